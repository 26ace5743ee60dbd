// Blocks in two languages show the one that the reader chose last, on any page.
const names = { python: "Python", cpp: "C++" };

function choose(language) {
  document.documentElement.dataset.language = language;
  for (const button of document.querySelectorAll(".languages > nav > button"))
    button.setAttribute("aria-pressed", button.value === language);
}

function remembered() {
  try {
    return localStorage.getItem("language");
  } catch {  // storage is disabled
    return null;
  }
}

function remember(language) {
  try {
    localStorage.setItem("language", language);
  } catch {
  }
}

for (const group of document.querySelectorAll(".languages")) {
  const bar = document.createElement("nav");
  for (const [language, name] of Object.entries(names)) {
    const button = document.createElement("button");
    button.type = "button";
    button.value = language;
    button.textContent = name;
    button.onclick = () => {
      const top = bar.getBoundingClientRect().top;
      choose(language);
      remember(language);
      window.scrollBy({ top: bar.getBoundingClientRect().top - top, behavior: "instant" });
    };
    bar.append(button);
  }
  group.prepend(bar);
}
choose(remembered() in names ? remembered() : "python");
