import { useState } from 'preact/hooks'
import { get, postStream, Refused } from '../client.ts'
import { type Card, maySteer } from '../model.ts'
import { Outcome, Reading, useAgainOn, useOver, useRead, useSaying } from '../parts.tsx'
import { TEXTS } from '../texts.ts'

/** The report, the same as the file, in a frame that can run nothing; of one that runs, when there will be one. */
export function Report({ card: { key, outcome, standing, report } }: { card: Card }) {
  const said = useSaying()
  const isOver = outcome !== null || standing !== 'running'
  const { value, problem, again } = useRead<{ path: string }>(isOver ? `sessions/${key}/report-ticket` : null)
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
      {!isOver && <p class="quiet">The report is written when the session ends.</p>}
      {isOver &&
        (value === null ? (
          <Reading problem={problem} />
        ) : (
          <iframe class="report" title="Report of the session" src={value.path} />
        ))}
      <p>
        <button type="button" onClick={openInTab}>
          {isOver ? TEXTS.reportOpen : TEXTS.progressOpen}
        </button>
      </p>
      <Outcome of={said} />
    </section>
  )
}

interface Line {
  text: string
  tone: string
}

interface ProofNow {
  open: readonly Line[]
  proved: readonly Line[]
}

/** What is proved, what is not proved yet, the certificate, and whether it is still true. */
export function Proof({ card: { key, outcome, report } }: { card: Card }) {
  const { value, problem, again } = useRead<ProofNow>(`sessions/${key}/proof`)
  const { value: certificate, problem: damaged } = useRead<{ text: string | null; canVerify: boolean }>(
    `sessions/${key}/certificate`,
  )
  useAgainOn(JSON.stringify([report?.gates, report?.claim, report?.reviews, outcome, report?.roundsUsed]), again)
  if (value === null) return <Reading problem={problem} />
  return (
    <section aria-label={TEXTS.tabs.proof}>
      <Lines title={outcome === null ? 'Not proved yet' : 'Not proved'} of={value.open} />
      <Lines title={TEXTS.tabs.proof} of={value.proved} />
      {outcome === null && <p class="quiet">The certificate is written when the session is done.</p>}
      {certificate?.canVerify === true && maySteer() && <VerifyAgain place={key} />}
      {damaged !== '' && <Reading problem={damaged} />}
      {certificate?.text != null && (
        <details>
          <summary>Certificate (done.json)</summary>
          <pre>{certificate.text}</pre>
        </details>
      )}
    </section>
  )
}

function Lines({ title, of }: { title: string; of: readonly Line[] }) {
  if (of.length === 0) return null
  return (
    <>
      <h2>{title}</h2>
      <ul class="lines">
        {of.map(({ text, tone }) => (
          <li key={text} class={tone}>
            {text}
          </li>
        ))}
      </ul>
    </>
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
