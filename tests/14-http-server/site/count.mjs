const text = await (await fetch("/-/counters")).text();
document.getElementById("requests").textContent = text.match(/^requests (\d+)$/m)[1];
