import { proseLines } from './prose.js'

/** The anchors of the headings in a Markdown text, as GitHub makes them: `## Two words` is `two-words`. */
export function findAnchors(markdown) {
  const anchors = new Set()
  for (const [, text] of proseLines(markdown)) {
    const title = /^ {0,3}#{1,6}\s+(.*?)\s*#*\s*$/.exec(text)?.[1]
    if (title !== undefined) anchors.add(unused(anchors, slug(title)))
  }
  return anchors
}

function slug(title) {
  return title
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .replace(/\s/g, '-')
}

function unused(anchors, wanted) {
  for (let n = 0; ; n++) {
    const anchor = n === 0 ? wanted : `${wanted}-${n}`
    if (!anchors.has(anchor)) return anchor
  }
}
