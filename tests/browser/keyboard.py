"""Somebody without a mouse: goes through a page by Tab, to what a screen reader would call by its name."""

from playwright.sync_api import Page, expect

MOST_TABS = 150
# Name and role of what has the focus, as the accessibility tree has them.
FOCUSED = """
() => {
  const element = document.activeElement;
  if (!element || element === document.body) return null;
  // Pages above this one have the names of what is done here.
  if (element.closest(".crumbs")) return "";
  const labels = element.labels ? [...element.labels].map((label) => label.innerText).join(" ") : "";
  const by = (element.getAttribute("aria-labelledby") || "").split(" ").filter(Boolean)
    .map((id) => document.getElementById(id)?.innerText || "").join(" ");
  const name = element.getAttribute("aria-label") || by || labels || element.innerText || element.value || "";
  return name.trim().replace(/\\s+/g, " ");
}
"""


class Keyboard:
    """`actions` counts what somebody decides to do: to fill in a field, to press a button, to follow a link,
    to choose a file. Tabs on the way are counted apart, in `tabs`.
    """

    def __init__(self, page: Page) -> None:
        self.page = page
        self.actions = 0
        self.tabs = 0

    def to(self, name: str) -> None:
        """Tab to what is called so, or begins so. Fails where it cannot be reached."""
        seen = []
        for _ in range(MOST_TABS):
            found = self.page.evaluate(FOCUSED)
            if found is not None and found.casefold().startswith(name.casefold()):
                return
            seen.append(found)
            self.page.keyboard.press("Tab")
            self.tabs += 1
        raise AssertionError(f"{name!r} is not reached by Tab; on the way: {seen}")

    def press(self, name: str, *, opens: str) -> None:
        """Go to a button or link and press it; `opens` is in the heading of the page that it leads to."""
        self.to(name)
        self.actions += 1
        self.page.keyboard.press("Enter")
        expect(self.page.get_by_role("heading", level=1)).to_contain_text(opens)

    def write(self, name: str, text: str) -> None:
        """Go to a field and replace what is in it."""
        self.to(name)
        self.actions += 1
        self.page.keyboard.press("ControlOrMeta+a")
        self.page.keyboard.type(text)

    def choose_file(self, name: str, path: str) -> None:
        """Go to a field for files, open the dialogue of the browser and choose one."""
        # Listening begins on the way there: it takes the browser a moment to hand dialogues over.
        with self.page.expect_file_chooser() as chooser:
            self.to(name)
            self.actions += 1
            self.page.keyboard.press("Enter")
        chooser.value.set_files(path)

    def log_in(self, username: str, password: str) -> None:
        self.write("Username", username)
        self.write("Password", password)
        self.page.keyboard.press("Enter")
        expect(self.page.get_by_role("button", name="Log out")).to_be_visible()
