import { signal } from '@preact/signals'
import { render } from 'preact'
import { connection, enterByLink, isIn, Refused, readIdentity } from './client.ts'
import { Unsent } from './inbox.tsx'
import { applyTheme, followCards, serverVersion } from './model.ts'
import { NowPage } from './now.tsx'
import { loaded } from './parts.tsx'
import { SessionPage } from './session/session.tsx'
import { NEWS, TEXTS } from './texts.ts'

declare const PAGE_VERSION: string

const problem = signal('')
/** What stands behind `#`: which of the pages is shown. */
const place = signal(location.hash)
addEventListener('hashchange', () => {
  // A link that is opened where the page is open already.
  if (location.hash.startsWith('#t=')) void enter()
  place.value = location.hash
  scrollTo(0, 0)
})

const StartPage = loaded(async () => (await import('./start.tsx')).StartPage)
const SettingsPage = loaded(async () => (await import('./settings.tsx')).SettingsPage)
const EnterPage = loaded(async () => (await import('./settings.tsx')).EnterPage)

function Shown() {
  if (!isIn.value) return <EnterPage />
  if (place.value.startsWith('#/new')) return <StartPage />
  if (place.value.startsWith('#/settings')) return <SettingsPage />
  const [, session, part = null, query = ''] =
    /^#\/s\/([\w.-]+\/[\w.-]+)(?:\/(\w+))?(?:\?(.*))?$/.exec(place.value) ?? []
  if (session === undefined) return <NowPage />
  return <SessionPage key={session} place={session} part={part} query={new URLSearchParams(query)} />
}

const LINKS = [
  { href: '#/', label: TEXTS.now, isHere: (at: string) => !/^#\/(new|settings)/.test(at) },
  { href: '#/new', label: TEXTS.new, isHere: (at: string) => at.startsWith('#/new') },
  { href: '#/settings', label: TEXTS.settings, isHere: (at: string) => at.startsWith('#/settings') },
]

function Page() {
  const isOld = serverVersion.value !== null && serverVersion.value !== PAGE_VERSION
  const said =
    problem.value ||
    (isOld ? TEXTS.oldPage : connection.value === 'cut' ? 'Disconnected. Showing the last state; reconnecting …' : '')
  const isOfSession = isIn.value && place.value.startsWith('#/s/')
  return (
    <>
      <button type="button" class="skip" onClick={() => document.getElementById('content')?.focus()}>
        Skip to content
      </button>
      <header class={isOfSession ? 'of-session' : undefined}>
        <a class="name" href="#/">
          <img src="/icon.svg" alt="" width="24" height="24" /> codemachine
        </a>
        {isOfSession && (
          <a class="back" href="#/">
            ‹ All sessions
          </a>
        )}
        <nav aria-label="Main">
          {LINKS.map(({ href, label, isHere }) => (
            <a key={href} href={href} aria-current={isHere(place.value) ? 'page' : undefined}>
              {label}
            </a>
          ))}
        </nav>
        <span class={`dot is-${connection.value}`} role="img" aria-label={TEXTS.connection[connection.value]} />
      </header>
      <p role="status" class="banner">
        {said}
      </p>
      <main id="content" tabIndex={-1}>
        {isIn.value && <Unsent />}
        <Shown />
      </main>
    </>
  )
}

const RELOADED = 'codemachine.reloaded'

/** Loads the page anew where its server is of another version: once for each version. */
function reloadOld(version: string | null): void {
  if (version === null || version === PAGE_VERSION || sessionStorage.getItem(RELOADED) === version) return
  sessionStorage.setItem(RELOADED, version)
  problem.value = 'codemachine was updated; this page loads the new version.'
  location.reload()
}

async function enter(): Promise<void> {
  try {
    await enterByLink()
    place.value = location.hash
  } catch (error) {
    if (!(error instanceof Refused)) throw error
    problem.value = error.text
  }
}

async function start(): Promise<void> {
  const page = document.getElementById('page')
  if (page === null) throw new Error('The page has no element to draw into.')
  applyTheme()
  await readIdentity()
  render(<Page />, page)
  serverVersion.subscribe(reloadOld)
  await enter()
  // Its words come with the page, so that a notification can be shown while it is closed.
  if ('serviceWorker' in navigator && isIn.value && Object.keys(NEWS).length > 0)
    await navigator.serviceWorker.register('/sw.js').catch(() => {})
  let following = new AbortController()
  isIn.subscribe(is => {
    following.abort()
    following = new AbortController()
    if (!is) return
    problem.value = ''
    void followCards(following.signal)
  })
}

void start()
