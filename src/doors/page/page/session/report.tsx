import { useState } from 'preact/hooks'
import { get, postStream, Refused } from '../client.ts'
import { type Card, maySteer } from '../model.ts'
import { Outcome, Reading, useAgainOn, useOver, useRead, useSaying } from '../parts.tsx'
import { TEXTS } from '../texts.ts'

/** What a session has done and proved: its certificate, and the report, the same as the file, in a frame that can run nothing. */
export function Report({ card: { key, report } }: { card: Card }) {
  const said = useSaying()
  const { value, problem, again } = useRead<{ path: string }>(`sessions/${key}/report-ticket`)
  const { value: certificate } = useRead<{ text: string | null }>(`sessions/${key}/certificate`)
  useAgainOn(JSON.stringify([report?.gates, report?.claim, report?.reviews]), again)
  const openInTab = () => {
    // While it is a person who asks: what comes later is no tab that a browser opens.
    const tab = window.open('about:blank')
    void said.do(async () => {
      const { path } = await get<{ path: string }>(`sessions/${key}/report-ticket`, new AbortController().signal)
      if (tab === null) throw new Refused({ problem: TEXTS.reportOpen })
      tab.location.href = path
      return null
    })
  }
  return (
    <section aria-label={TEXTS.tabs.report}>
      {certificate?.text == null ? (
        <p class="quiet">No certificate yet. It is written when the session is done.</p>
      ) : (
        <>
          {maySteer() && <VerifyAgain place={key} />}
          <details>
            <summary>Certificate (done.json)</summary>
            <pre>{certificate.text}</pre>
          </details>
        </>
      )}
      <p>
        <button type="button" onClick={openInTab}>
          {TEXTS.reportOpen}
        </button>
      </p>
      <Outcome of={said} />
      {value === null ? (
        <Reading problem={problem} />
      ) : (
        <iframe class="report" title="Report of the session" src={value.path} />
      )}
    </section>
  )
}

/** Runs the gates of what is done again. */
function VerifyAgain({ place }: { place: string }) {
  const said = useSaying()
  const [lines, setLines] = useState<readonly string[]>([])
  const over = useOver()
  const verify = () =>
    said.do(async () => {
      setLines(['The gates are running …'])
      let isOver = false
      await postStream<{ text?: string; words?: readonly string[] }>(
        `sessions/${place}/verify`,
        {},
        ({ data }) => {
          isOver ||= data.words !== undefined
          setLines(before => data.words ?? (data.text === undefined ? before : [...before, data.text]))
        },
        over.signal,
      ).catch((error: unknown) => {
        setLines([])
        throw error
      })
      if (isOver) return null
      setLines([])
      throw new Refused({ problem: 'Disconnected before the end. Verify again to see the result.' })
    })
  return (
    <>
      <p class="quiet">Runs the gates of the session again on the current files.</p>
      <button type="button" class="primary" disabled={said.isBusy.value} onClick={() => void verify()}>
        Verify again
      </button>
      {lines.length > 0 && (
        <pre role="status" class="verified">
          {lines.join('\n')}
        </pre>
      )}
      <Outcome of={said} />
    </>
  )
}
