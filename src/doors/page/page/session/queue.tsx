import { useState } from 'preact/hooks'
import { post } from '../client.ts'
import { type Card, maySteer } from '../model.ts'
import {
  Field,
  LimitFields,
  limitsIn,
  Outcome,
  Reading,
  type Saying,
  textIn,
  useRead,
  useSaying,
  VirtualList,
} from '../parts.tsx'
import { TEXTS } from '../texts.ts'

interface Prompt {
  id: string
  prompt: string
  at: string
  template?: string
  gates?: readonly string[]
  limits?: Readonly<Record<string, number>>
}

/** What begins a session: the names of those that a prompt begins. */
export interface Templates {
  templates: readonly { name: string; description: string; takes: readonly ('prompt' | 'specification')[] }[]
}

/** What waits in the directory of a session. */
export function Queue({ card: { place, standing } }: { card: Card }) {
  const { value, problem, again } = useRead<{
    prompts: readonly Prompt[]
    problems: readonly string[]
    count: number
  }>(`places/${place}/queue`)
  const said = useSaying()
  const change = (what: string, body: object) =>
    said.do(async () => {
      await post(`places/${place}/queue/${what}`, body)
      again()
      return null
    })
  if (value === null) return <Reading problem={problem} />
  const { prompts, problems, count } = value
  const left = count - prompts.length - problems.length
  return (
    <section aria-label={TEXTS.queue}>
      {problems.map(each => (
        <p key={each} class="outcome bad">
          {each}
        </p>
      ))}
      {prompts.length === 0 ? (
        <p class="quiet">The queue is empty.</p>
      ) : (
        <VirtualList class="queue" label={TEXTS.queue} items={prompts} keyOf={({ id }) => id} height={96}>
          {(prompt, index) => <Waiting prompt={prompt} index={index} all={prompts} place={place} change={change} />}
        </VirtualList>
      )}
      {left > 0 && <p class="quiet">{`${left} more are queued.`}</p>}
      <Outcome of={said} />
      {maySteer() && (
        <>
          {prompts.length > 0 && standing !== 'running' && (
            <button type="button" onClick={() => void change('run', {})}>
              Run the queue
            </button>
          )}
          <Add said={said} change={change} />
        </>
      )}
    </section>
  )
}

type Change = (what: string, body: object) => Promise<boolean>

function Waiting({
  prompt,
  index,
  all,
  place,
  change,
}: {
  prompt: Prompt
  index: number
  all: readonly Prompt[]
  place: string
  change: Change
}) {
  const [isEdited, setEdited] = useState(false)
  const { id, template, gates = [], limits = {} } = prompt
  const terms = [template, ...Object.entries(limits).map(([name, value]) => `${name} ${value}`), ...gates]
  if (isEdited) return <Edited place={place} id={id} change={change} onEnd={() => setEdited(false)} />
  // Behind the one after it is before the one after that.
  const later = all[index + 2]?.id ?? null
  return (
    <div class="waiting">
      <p>
        <b>{id}</b> {prompt.prompt}
      </p>
      <p class="quiet">{terms.filter(each => each !== undefined).join(' · ')}</p>
      {maySteer() && (
        <div class="choices">
          <button type="button" onClick={() => setEdited(true)} aria-label={`${TEXTS.edit} ${id}`}>
            {TEXTS.edit}
          </button>
          <button
            type="button"
            disabled={index === 0}
            onClick={() => void change('move', { id, before: all[index - 1]?.id ?? null })}
            aria-label={`${TEXTS.up} ${id}`}
          >
            {TEXTS.up}
          </button>
          <button
            type="button"
            disabled={index === all.length - 1}
            onClick={() => void change('move', { id, before: later })}
            aria-label={`${TEXTS.down} ${id}`}
          >
            {TEXTS.down}
          </button>
          <button type="button" onClick={() => void change('remove', { id })} aria-label={`${TEXTS.remove} ${id}`}>
            {TEXTS.remove}
          </button>
        </div>
      )}
    </div>
  )
}

/** The whole text of a prompt, to be changed. */
function Edited({ place, id, change, onEnd }: { place: string; id: string; change: Change; onEnd: () => void }) {
  const { value, problem } = useRead<{ prompt: string }>(`places/${place}/queue/${id}`)
  if (value === null) return <Reading problem={problem} />
  return (
    <form
      class="waiting"
      onSubmit={event => {
        event.preventDefault()
        void change('edit', { id, prompt: textIn(event.currentTarget, 'prompt') }).then(isTaken => isTaken && onEnd())
      }}
    >
      <Field label={TEXTS.prompt}>
        <textarea name="prompt" rows={4} defaultValue={value.prompt} />
      </Field>
      <div class="choices">
        <button type="submit">Save</button>
        <button type="button" onClick={onEnd}>
          Cancel
        </button>
      </div>
    </form>
  )
}

function Add({ said, change }: { said: Saying; change: Change }) {
  return (
    <form
      onSubmit={event => {
        event.preventDefault()
        const form = event.currentTarget
        const terms = termsIn(form)
        if (terms === null) return said.say(TEXTS.wrongLimit, true)
        void change('add', { prompt: textIn(form, 'prompt'), ...terms }).then(isTaken => isTaken && form.reset())
      }}
    >
      <h3>Add a prompt</h3>
      <Field label={TEXTS.prompt}>
        <textarea name="prompt" rows={3} required />
      </Field>
      <TermFields takes="prompt" />
      <button type="submit" class="primary">
        Add
      </button>
    </form>
  )
}

/** The fields of what a session begins with, beside its goal: `termsIn` reads them. */
export function TermFields({ takes }: { takes: 'prompt' | 'specification' }) {
  const { value } = useRead<Templates>('places')
  const fitting = value?.templates.filter(each => each.takes.includes(takes)) ?? []
  return (
    <details>
      <summary>
        {TEXTS.template}, {TEXTS.limits}
      </summary>
      <Field label={TEXTS.template}>
        <select name="template">
          <option value="">–</option>
          {fitting.map(({ name, description }) => (
            <option key={name} value={name}>
              {name}: {description}
            </option>
          ))}
        </select>
      </Field>
      <Field label="Checks that must pass (one command per line)">
        <textarea name="gates" rows={2} />
      </Field>
      <LimitFields />
    </details>
  )
}

/** What a form says a session begins with; null: one of its limits is none. */
export function termsIn(form: HTMLFormElement): object | null {
  const limits = limitsIn(form)
  if (limits === null) return null
  const template = textIn(form, 'template')
  const gates = textIn(form, 'gates')
    .split('\n')
    .map(line => line.trim())
    .filter(line => line !== '')
  return {
    ...(template === '' ? {} : { template }),
    ...(gates.length === 0 ? {} : { gates }),
    ...(Object.keys(limits).length === 0 ? {} : { limits }),
  }
}
