const link = /\[[^\]]*\]\(([^)\s]+)[^)]*\)/g

/** The links in a Markdown text, each with the line that it stands in. */
export function findLinks(markdown) {
  const links = []
  for (const [index, text] of markdown.split('\n').entries()) {
    for (const match of text.matchAll(link)) links.push({ line: index + 1, target: match[1] })
  }
  return links
}
