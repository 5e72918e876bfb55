import { signal } from '@preact/signals'
import { render } from 'preact'
import { connection, deviceKey, enterByLink, Refused } from './client.ts'
import { followCards, NowPage } from './now.tsx'
import { SessionPage } from './session.tsx'
import { TEXTS } from './texts.ts'

const problem = signal('')
/** What stands behind `#`: which of the pages is shown. */
const place = signal(location.hash)
addEventListener('hashchange', () => {
  place.value = location.hash
})

function Shown() {
  if (deviceKey.value === null) return <p>{TEXTS.noKey}</p>
  const session = /^#\/s\/(.+)$/.exec(place.value)?.[1]
  return session === undefined ? <NowPage /> : <SessionPage key={session} place={session} />
}

function Page() {
  return (
    <>
      <header>
        <a href="#/">{TEXTS.title}</a>
        <span class={`dot ${connection.value}`} />
      </header>
      <p role="status" class="cut">
        {problem.value || (connection.value === 'cut' ? TEXTS.cut : '')}
      </p>
      <main id="content">
        <Shown />
      </main>
    </>
  )
}

async function start(): Promise<void> {
  const place = document.getElementById('page')
  if (place === null) throw new Error('The page has no place.')
  render(<Page />, place)
  try {
    await enterByLink()
  } catch (error) {
    if (!(error instanceof Refused)) throw error
    problem.value = [error.message, error.hint ?? ''].join(' ').trim()
  }
  if (deviceKey.value !== null) await followCards(new AbortController().signal)
}

void start()
