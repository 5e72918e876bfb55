import MiniSearch from 'minisearch'

/** A section of a page, as it is searched. */
export interface Section {
  /** The path of its page in the site, and its anchor. */
  id: string
  title: string
  text: string
}

/** The search of the site: sections by their words, the title first; a word may be cut short or mistyped. */
export function openSearch(sections: readonly Section[]): (typed: string) => { id: string; title: string }[] {
  const index = new MiniSearch<Section>({
    fields: ['title', 'text'],
    storeFields: ['title'],
    processTerm: term => (SAYS_NOTHING.has(term.toLowerCase()) ? null : term.toLowerCase()),
    searchOptions: {
      boost: { title: 4 },
      prefix: true,
      fuzzy: 0.15,
      combineWith: 'OR',
      // Whoever types the words of an error looks for what to do about it.
      boostDocument: id => (String(id).startsWith('troubleshooting.html#') ? 2 : 1),
    },
  })
  index.addAll(sections)
  return typed => index.search(typed).map(({ id, title }) => ({ id: String(id), title: String(title) }))
}

/** They stand in every section. */
const SAYS_NOTHING: ReadonlySet<string> = new Set(
  'a an and are as at be but by can cannot do does for from has have how i if in is it its my no not of on or that the there this to was what when where which why with you your'.split(
    ' ',
  ),
)
