import { useEffect, useState } from 'preact/hooks'
import { get, post, Refused } from './client.ts'
import { maySteer } from './model.ts'
import { Field, Outcome, Reading, textIn, useRead, useSaying } from './parts.tsx'
import { type Templates, TermFields, termsIn } from './session/queue.tsx'
import { TEXTS } from './texts.ts'

interface Places extends Templates {
  places: readonly { place: string; directory: string; isRunning: boolean; queued: number }[]
}

/** Begins a session in a directory that is known. */
export function StartPage() {
  const { value, problem } = useRead<Places>('places')
  const [chosen, setChosen] = useState<string | null>(null)
  const [takes, setTakes] = useState<Takes>('prompt')
  const said = useSaying()
  const [isTaken, setTaken] = useState(false)
  if (!maySteer()) return <p class="quiet">This device is view only.</p>
  if (value === null) return <Reading problem={problem} />
  if (value.places.length === 0)
    return <p class="quiet">No directories yet. Start the first session of a directory in a terminal.</p>
  const place = chosen ?? value.places[0]?.place ?? ''
  const start = async (form: HTMLFormElement, isQueued: boolean) => {
    const terms = termsIn(form)
    if (terms === null) return said.say(TEXTS.wrongLimit, true)
    const goal = takes === 'prompt' ? textIn(form, 'wanted') : null
    await said.do(async () => {
      if (isQueued) {
        await post(`places/${place}/queue/add`, { prompt: goal ?? '', ...terms })
        setTaken(false)
        return 'Queued.'
      }
      said.say('Starting …')
      const wanted = { place, goal, ...terms, ...choicesIn(form) }
      try {
        const { session, place: at } = await post<{ session: string | null; place: string }>('start', wanted)
        setTaken(false)
        if (session !== null) location.hash = `#/s/${at}/${session}`
        return session === null ? TEXTS.slow : TEXTS.started
      } catch (error) {
        setTaken(error instanceof Refused && goal !== null)
        throw error
      }
    })
  }
  return (
    <form
      id="start"
      onSubmit={event => {
        event.preventDefault()
        void start(event.currentTarget, false)
      }}
    >
      <h1>{TEXTS.new}</h1>
      <Where places={value.places} place={place} choose={setChosen} />
      <Takes takes={takes} choose={setTakes} />
      {takes === 'prompt' ? <Goal place={place} /> : <Specification place={place} />}
      <TermFields takes={takes} />
      <label class="check">
        <input type="checkbox" name="worktree" /> In its own worktree
      </label>
      {takes === 'specification' && (
        <label class="check">
          <input type="checkbox" name="acceptsPlan" /> Accept the plan automatically
        </label>
      )}
      <div class="choices">
        <button type="submit" class="primary" disabled={said.isBusy.value}>
          Start
        </button>
        {isTaken && (
          <button
            type="button"
            onClick={event => {
              const { form } = event.currentTarget
              if (form !== null) void start(form, true)
            }}
          >
            Add to the queue
          </button>
        )}
      </div>
      <Outcome of={said} />
    </form>
  )
}

type Takes = 'prompt' | 'specification'

function Where({ places, place, choose }: Pick<Places, 'places'> & { place: string; choose: (place: string) => void }) {
  return (
    <Field label="Directory">
      <select value={place} onChange={event => choose(event.currentTarget.value)}>
        {places.map(each => (
          <option key={each.place} value={each.place}>
            {each.directory}
          </option>
        ))}
      </select>
    </Field>
  )
}

/** Whether it works on a goal that is typed, or on what the specification asks for. */
function Takes({ takes, choose }: { takes: Takes; choose: (takes: Takes) => void }) {
  return (
    <fieldset class="choices">
      <legend class="unseen">{TEXTS.goal}</legend>
      {(['prompt', 'specification'] as const).map(each => (
        <label key={each} class="check">
          <input type="radio" name="takes" checked={takes === each} onChange={() => choose(each)} />{' '}
          {each === 'prompt' ? 'By a goal' : 'From its specification'}
        </label>
      ))}
    </fieldset>
  )
}

function choicesIn(form: HTMLFormElement): object {
  const isChecked = (name: string) => {
    const box = form.elements.namedItem(name)
    return box instanceof HTMLInputElement && box.checked
  }
  return {
    ...(isChecked('worktree') ? { worktree: true } : {}),
    ...(isChecked('acceptsPlan') ? { acceptsPlan: true } : {}),
  }
}

function Specification({ place }: { place: string }) {
  const { value, problem } = useRead<{ path: string; title: string; text: string }>(`places/${place}/specification`)
  if (value === null) return <Reading problem={problem} />
  return (
    <details open>
      <summary class="path">{value.path}</summary>
      <pre>{value.text}</pre>
    </details>
  )
}

/** The `@` word that the caret is in, and where it begins; null: it is in none. */
function fileWord(text: string, caret: number): { query: string; start: number } | null {
  const [, query] = /(?:^|\s)@([^\s@]*)$/.exec(text.slice(0, caret)) ?? []
  return query === undefined ? null : { query, start: caret - query.length - 1 }
}

/** The goal, in which `@` names a file of the directory. */
function Goal({ place }: { place: string }) {
  const [text, setText] = useState('')
  const [caret, setCaret] = useState(0)
  const [files, setFiles] = useState<readonly string[]>([])
  const word = fileWord(text, caret)
  const query = word?.query ?? null
  useEffect(() => {
    setFiles([])
    if (query === null) return
    const over = new AbortController()
    get<{ files: readonly string[] }>(`places/${place}/files?${new URLSearchParams({ q: query })}`, over.signal).then(
      ({ files: found }) => setFiles(found),
      () => {},
    )
    return () => over.abort()
  }, [place, query])
  const put = (file: string) => {
    if (word === null) return
    const named = /\s/.test(file) ? `@"${file}"` : `@${file}`
    setText(`${text.slice(0, word.start)}${named} ${text.slice(caret)}`)
    setCaret(word.start + named.length + 1)
    document.querySelector<HTMLTextAreaElement>('#start [name=wanted]')?.focus()
  }
  return (
    <>
      <Field label={TEXTS.goal} hint="What should be achieved, and how can we tell? @ names a file.">
        <textarea
          name="wanted"
          rows={6}
          required
          value={text}
          onInput={event => {
            setText(event.currentTarget.value)
            setCaret(event.currentTarget.selectionStart)
          }}
          onClick={event => setCaret(event.currentTarget.selectionStart)}
          onKeyUp={event => setCaret(event.currentTarget.selectionStart)}
        />
      </Field>
      {files.length > 0 && (
        <ul class="found" aria-label="Files">
          {files.map(file => (
            <li key={file}>
              <button type="button" class="path" onClick={() => put(file)}>
                {file}
              </button>
            </li>
          ))}
        </ul>
      )}
    </>
  )
}
