import { useState } from 'preact/hooks'
import type { ReportData } from '../../../../tell/report/report-data.ts'
import { get, postStream, Refused } from '../client.ts'
import { type Card, maySteer } from '../model.ts'
import { Outcome, Reading, useAgainOn, useOver, useRead, useSaying } from '../parts.tsx'
import { TEXTS } from '../texts.ts'

/** The report, with words for its gates, reviews and protected files. */
interface ToldReport extends ReportData {
  words: { gates: readonly string[]; reviews: readonly string[]; protectedFiles: readonly string[] }
}

/** What a session has proved, and what it has not. */
export function Proof({ card: { key, report } }: { card: Card }) {
  const { value, problem, again } = useRead<ToldReport>(`sessions/${key}/report`)
  const { value: certificate } = useRead<{ text: string | null }>(`sessions/${key}/certificate`)
  const news = JSON.stringify([report?.gates, report?.claim, report?.reviews])
  useAgainOn(news, again)
  if (value === null) return <Reading problem={problem} />
  const { proof, refusals } = value
  return (
    <div class="proof">
      <Gates gates={proof.gates} words={value.words.gates} />
      <section aria-label={TEXTS.refusals}>
        <h2>{TEXTS.refusals}</h2>
        {refusals.entries.length === 0 && <p class="quiet">{TEXTS.noRefusals}</p>}
        <ul>
          {refusals.entries.map(({ at, round, reason, detail }) => (
            <li key={at + reason}>
              <b>{TEXTS.round(round)}</b> {reason}: {detail}
            </li>
          ))}
        </ul>
      </section>
      <Reviews proof={proof} words={value.words.reviews} />
      {proof.protectedFiles.length > 0 && (
        <section aria-label={TEXTS.protectedFiles}>
          <h2>{TEXTS.protectedFiles}</h2>
          <ul>
            {proof.protectedFiles.map(({ path }, at) => (
              <li key={path}>
                <span class="path">{path}</span>: {value.words.protectedFiles[at]}
              </li>
            ))}
          </ul>
        </section>
      )}
      <section aria-label={TEXTS.certificate}>
        <h2>{TEXTS.certificate}</h2>
        {certificate?.text == null ? (
          <p class="quiet">{TEXTS.noCertificate}</p>
        ) : (
          <>
            {maySteer() && <VerifyAgain place={key} />}
            <details>
              <summary>done.json</summary>
              <pre>{certificate.text}</pre>
            </details>
          </>
        )}
      </section>
    </div>
  )
}

function Gates({ gates, words }: { gates: ReportData['proof']['gates']; words: readonly string[] }) {
  return (
    <section aria-label={TEXTS.gatesTitle}>
      <h2>{TEXTS.gatesTitle}</h2>
      {gates.length === 0 && <p class="quiet">{TEXTS.noGates}</p>}
      {gates.map((gate, index) => (
        <details key={gate.name} class={gate.last?.status === 'passed' ? 'good' : gate.last === null ? '' : 'bad'}>
          <summary>
            {gate.name}: {words[index]} {gate.required && <span class="quiet">({TEXTS.required})</span>}
          </summary>
          <pre>{gate.run}</pre>
          {gate.last !== null && gate.last.output !== '' && <pre>{gate.last.output}</pre>}
        </details>
      ))}
    </section>
  )
}

function Reviews({ proof, words }: { proof: ReportData['proof']; words: readonly string[] }) {
  return (
    <section aria-label={TEXTS.reviews}>
      <h2>{TEXTS.reviews}</h2>
      {proof.reviews.entries.length === 0 && <p class="quiet">{TEXTS.noReviews}</p>}
      {proof.reviews.entries.map((review, index) => (
        <div key={review.review}>
          <p>{words[index]}</p>
          <p class="quiet">{review.summary}</p>
        </div>
      ))}
      {proof.findings.length > 0 && (
        <>
          <h3>{TEXTS.findings}</h3>
          <ul>
            {proof.findings.map((finding, index) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: they have no other name, and never change their order
              <li key={index}>
                {Object.values(finding)
                  .filter(each => typeof each === 'string')
                  .join(' · ')}
              </li>
            ))}
          </ul>
        </>
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
      setLines([TEXTS.verifying])
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
      throw new Refused({ problem: TEXTS.cutOff })
    })
  return (
    <>
      <p class="quiet">{TEXTS.verifyHint}</p>
      <button type="button" class="primary" disabled={said.isBusy.value} onClick={() => void verify()}>
        {TEXTS.verify}
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

/** The report, the same as the file: in a frame that can run nothing. */
export function Report({ card: { key } }: { card: Card }) {
  const said = useSaying()
  const { value, problem } = useRead<{ path: string }>(`sessions/${key}/report-ticket`)
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
      <p>
        <button type="button" onClick={openInTab}>
          {TEXTS.reportOpen}
        </button>
      </p>
      <Outcome of={said} />
      {value === null ? (
        <Reading problem={problem} />
      ) : (
        <iframe class="report" title={TEXTS.reportFrame} src={value.path} />
      )}
    </section>
  )
}
