"""Links of the pages: from the repository to the site, and whether all of them lead somewhere."""
import html.parser
import posixpath
import re
import urllib.parse

LINK = re.compile(r"(`[^`]*`)|(?<=\])\(([^()\s]+)\)")
FENCE = re.compile(r" *(```+|~~~+)")
PICTURES = (".svg", ".png")
LANGUAGES = {".py": "python", ".cpp": "cpp", ".c": "c", ".h": "cpp", ".txt": "cmake", ".sh": "bash"}


class Resolver:
    """Turns links to folders and to files that are no pages into links to pages."""

    def __init__(self, pages, root):
        self.pages, self.root, self.made = pages, root, {}

    def target(self, page, link):
        """The link of a page as the site has it."""
        place, mark, anchor = link.partition("#")
        if not place or ":" in place:
            return link
        path = posixpath.normpath(posixpath.join(posixpath.dirname(page), place))
        found = self.page_for(path)
        if found is None:
            return link
        return posixpath.relpath(found, posixpath.dirname(page) or ".") + mark + anchor

    def page_for(self, path):
        """The page of a path in the repository; made here for sources. None: there is none."""
        index = posixpath.join(posixpath.dirname(path), "index.md")
        if posixpath.basename(path) == "README.md" and index in self.pages:
            return index
        for page in (path, posixpath.join(path, "index.md")):
            if page in self.pages or page in self.made:
                return page
        source = self.root / path
        if path.endswith(PICTURES):
            return path
        if source.is_dir():
            name = posixpath.join(path, "index.md")
            files = sorted(p for p in source.iterdir() if p.is_file())
            self.made[name] = self.headed(path, *map(self.listed, files))
        elif source.is_file():
            name = path + ".md"
            self.made[name] = self.headed(path, self.code(source))
        else:
            return None
        return name

    def headed(self, path, *parts):
        """A page that no table of contents holds."""
        return "\n".join(["---", "orphan: true", "---", "", f"# {path}", "", *parts])

    def listed(self, source):
        return f"## {source.name}\n\n{self.code(source)}"

    def code(self, source):
        return f"````{LANGUAGES.get(source.suffix, 'text')}\n{source.read_text()}\n````\n"

    def page(self, name, text):
        out, fence = [], ""
        for line in text.split("\n"):
            opened = FENCE.match(line)
            if opened and (not fence or line.strip().startswith(fence)):
                fence = "" if fence else opened[1]
            elif not fence:
                line = LINK.sub(lambda m: m[1] or f"({self.target(name, m[2])})", line)
            out.append(line)
        return "\n".join(out)


def resolved(pages, root):
    """The pages with links of the site, and the pages made for what they link to."""
    resolver = Resolver(pages, root)
    done = {name: resolver.page(name, text) for name, text in pages.items()}
    return done | resolver.made


class Page(html.parser.HTMLParser):
    """The ids, links and assets of a page of the site."""

    def __init__(self, text):
        super().__init__()
        self.ids, self.links, self.assets = set(), [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.ids |= {given.get("id"), given.get("name")}
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        if tag in ("script", "img", "iframe", "source") and given.get("src"):
            self.assets.append(given["src"])
        if tag == "link" and given.get("rel") != "canonical":
            self.assets.append(given.get("href", ""))


def faults(site):
    """Links that lead nowhere, and assets that need the network."""
    pages = {path: Page(path.read_text()) for path in site.rglob("*.html")}
    found = []
    for path, page in pages.items():
        name = path.relative_to(site)
        remote = [asset for asset in page.assets if urllib.parse.urlsplit(asset).netloc]
        found += [f"{name}: {asset} needs the network" for asset in remote]
        for link in [*page.links, *page.assets]:
            parts = urllib.parse.urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            place = urllib.parse.unquote(parts.path)
            there = (path.parent / place).resolve() if place else path
            if not there.is_file():
                found.append(f"{name}: {link} does not exist")
            elif parts.fragment and there in pages:
                if urllib.parse.unquote(parts.fragment) not in pages[there].ids:
                    found.append(f"{name}: {link} has no such anchor")
    for path in site.rglob("*.css"):
        remote = re.findall(r"(?:@import|url\()\s*[\"']?(https?:[^\"')]*)", path.read_text())
        found += [f"{path.relative_to(site)}: {address} needs the network" for address in remote]
    return found
