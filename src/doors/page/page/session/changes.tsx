import { useState } from 'preact/hooks'
import type { DiffLine } from '../../../../project/diff/comparison.ts'
import { post } from '../client.ts'
import { type Card, maySteer } from '../model.ts'
import { Field, Outcome, Reading, textIn, useRead, useSaying, VirtualList } from '../parts.tsx'
import { TEXTS } from '../texts.ts'

interface Changed {
  path: string
  from: string | null
  added: number | null
  removed: number | null
  isProtected: boolean
}

interface Comparison {
  from: string
  to: string
  count: number
  added: number
  removed: number
  files: readonly Changed[]
}

interface Savepoint {
  id: string
  session: string | null
  round: number
  at: number
}

/** What has changed in the files: since the session began, in a round, or between savepoints. */
export function Changes({ card: { key, place, id }, query }: { card: Card; query: URLSearchParams }) {
  const [states, setStates] = useState(queryOf(query))
  const wanted = query.get('round') === null ? states : queryOf(query)
  const { value, problem, again } = useRead<Comparison>(`sessions/${key}/changes${wanted}`)
  const { value: kept } = useRead<{ savepoints: readonly Savepoint[] }>(`sessions/${key}/savepoints`)
  const [open, setOpen] = useState<string | null>(null)
  const savepoints = kept?.savepoints ?? []
  return (
    <section aria-label={TEXTS.tabs.changes}>
      <form
        class="line"
        onSubmit={event => {
          event.preventDefault()
          const [from, to] = [textIn(event.currentTarget, 'from'), textIn(event.currentTarget, 'to')]
          setStates(`?${new URLSearchParams({ from, to })}`)
          if (query.get('round') !== null) location.hash = `#/s/${key}/changes`
        }}
      >
        <Field label="From">
          <select name="from" defaultValue={`${id}/start`}>
            <option value={`${id}/start`}>the start of the session</option>
            <Options of={savepoints} />
          </select>
        </Field>
        <Field label="To">
          <select name="to" defaultValue="now">
            <option value="now">the current files</option>
            <Options of={savepoints} />
          </select>
        </Field>
        <button type="submit">Compare</button>
      </form>
      {value === null ? (
        <Reading problem={problem} />
      ) : (
        <>
          <p>
            {value.from} → {value.to}:{' '}
            {value.count === 0 ? 'No differences.' : TEXTS.changesCount(value.count, value.added, value.removed)}
          </p>
          {value.files.length > 0 && (
            <VirtualList class="files" label={TEXTS.changed} items={value.files} keyOf={({ path }) => path} height={48}>
              {file => (
                <FileRow
                  file={file}
                  isOpen={file.path === open}
                  choose={() => setOpen(file.path === open ? null : file.path)}
                />
              )}
            </VirtualList>
          )}
          {open !== null && <FileDiff place={key} path={open} states={wanted} />}
        </>
      )}
      {maySteer() && <Rewind place={key} savepoints={savepoints} done={again} key={place} />}
    </section>
  )
}

function queryOf(query: URLSearchParams): string {
  const round = query.get('round')
  return round === null ? '' : `?${new URLSearchParams({ round })}`
}

function Options({ of }: { of: readonly Savepoint[] }) {
  return (
    <>
      {of.toReversed().map(({ id, at }) => (
        <option key={id} value={id}>
          {id} · {new Date(at).toLocaleString()}
        </option>
      ))}
    </>
  )
}

function FileRow({ file, isOpen, choose }: { file: Changed; isOpen: boolean; choose: () => void }) {
  const { path, from, added, removed, isProtected } = file
  return (
    <button type="button" class="file" aria-expanded={isOpen} onClick={choose}>
      <span class="path">{path}</span>
      <span class="counts">
        {added === null ? (
          'not text'
        ) : (
          <>
            <span class="good">+{added}</span> <span class="bad">−{removed}</span>
          </>
        )}
      </span>
      {from !== null && <span class="quiet">{`renamed from ${from}`}</span>}
      {isProtected && <span class="wait">protected by a gate</span>}
    </button>
  )
}

function FileDiff({ place, path, states }: { place: string; path: string; states: string }) {
  const query = new URLSearchParams(states)
  query.set('path', path)
  const { value, problem } = useRead<{ lines: readonly DiffLine[] }>(`sessions/${place}/changes/file?${query}`)
  return (
    <section aria-label={path}>
      <h2 class="path">{path}</h2>
      {value === null ? (
        <Reading problem={problem} />
      ) : (
        <VirtualList class="diff" label={path} items={value.lines} keyOf={(_, index) => index} height={20}>
          {line => <Line line={line} />}
        </VirtualList>
      )}
    </section>
  )
}

const SIGNS = { hunk: '', same: ' ', added: '+', removed: '-', note: '' } as const

function Line({ line: { kind, before, after, text } }: { line: DiffLine }) {
  return (
    <div class={`diff-line ${kind}`}>
      <span class="number">{before ?? ''}</span>
      <span class="number">{after ?? ''}</span>
      <code>
        {SIGNS[kind]}
        {text}
      </code>
    </div>
  )
}

interface Planned {
  to: string
  files: number
  words: readonly string[]
  undo: string | null
}

/** Makes the files those of a savepoint: what that would change is seen first. */
function Rewind({ place, savepoints, done }: { place: string; savepoints: readonly Savepoint[]; done: () => void }) {
  const said = useSaying()
  const [plan, setPlan] = useState<Planned | null>(null)
  if (savepoints.length === 0) return null
  const rewind = (to: string, go: boolean) =>
    said.do(async () => {
      const planned = await post<Planned>(`sessions/${place}/rewind`, { to, go })
      setPlan(go || planned.files === 0 ? null : planned)
      if (go) done()
      return [...planned.words, ...(planned.undo === null ? [] : [`To undo this, rewind to ${planned.undo}.`])].join(
        ' ',
      )
    })
  return (
    <details class="rewind">
      <summary>Rewind the files</summary>
      <form
        onSubmit={event => {
          event.preventDefault()
          void rewind(textIn(event.currentTarget, 'to'), false)
        }}
      >
        <Field
          label="Restore the files of"
          hint="Only files change: no branch, index or memory. A savepoint keeps the current files first."
        >
          <select name="to" onChange={() => setPlan(null)}>
            <Options of={savepoints} />
          </select>
        </Field>
        <button type="submit">Preview the changes</button>
      </form>
      {plan !== null && (
        <button type="button" class="danger" onClick={() => void rewind(plan.to, true)}>
          {`Rewind to ${plan.to}`}
        </button>
      )}
      <Outcome of={said} />
    </details>
  )
}
