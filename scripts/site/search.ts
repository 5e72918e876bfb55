import { openSearch, type Section } from './open-search.ts'

const search = openSearch((globalThis as unknown as { PAGES: Section[] }).PAGES)

const input = document.querySelector<HTMLInputElement>('search input')
const list = document.querySelector<HTMLOListElement>('search ol')
const up = document.body.dataset.up ?? '.'

list?.addEventListener('click', () => {
  list.hidden = true
})
input?.addEventListener('input', () => {
  if (list === null) return
  const found = search(input.value).slice(0, 12)
  list.replaceChildren(
    ...found.map(({ id, title }) => {
      const link = document.createElement('a')
      link.href = `${up}/${id}`
      link.textContent = title
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
