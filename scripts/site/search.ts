import MiniSearch from 'minisearch'

/** The search of the site: sections by their words, the title first; a word may be cut short or mistyped. */

interface Section {
  id: string
  title: string
  text: string
}

const search = new MiniSearch<Section>({
  fields: ['title', 'text'],
  storeFields: ['title'],
  searchOptions: { boost: { title: 4 }, prefix: true, fuzzy: 0.15, combineWith: 'OR' },
})
search.addAll((globalThis as unknown as { PAGES: Section[] }).PAGES)

const input = document.querySelector<HTMLInputElement>('search input')
const list = document.querySelector<HTMLOListElement>('search ol')
const up = document.body.dataset.up ?? '.'

list?.addEventListener('click', () => {
  list.hidden = true
})
input?.addEventListener('input', () => {
  if (list === null) return
  const found = search.search(input.value).slice(0, 12)
  list.replaceChildren(
    ...found.map(({ id, title }) => {
      const link = document.createElement('a')
      link.href = `${up}/${id}`
      link.textContent = title as string
      const item = document.createElement('li')
      item.append(link)
      return item
    }),
  )
  if (found.length === 0 && input.value.trim() !== '') list.textContent = 'No match.'
  list.hidden = input.value.trim() === ''
})
document.addEventListener('keydown', event => {
  if (event.key === '/' && document.activeElement !== input) {
    event.preventDefault()
    input?.focus()
  }
  if (event.key === 'Escape' && list !== null) list.hidden = true
  if (event.key === 'Enter' && document.activeElement === input) list?.querySelector('a')?.click()
})
// Wide screens show the pages at the side; narrow ones behind a button.
const menu = document.querySelector<HTMLDetailsElement>('details.menu')
const wide = matchMedia('(min-width: 900px)')
const follow = () => {
  if (menu !== null) menu.open = wide.matches
}
wide.addEventListener('change', follow)
follow()
