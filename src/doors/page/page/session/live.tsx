import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import type { LiveItem } from '../../../../core/events/live-board.ts'
import { shownCommand } from '../../../../tell/words/names.ts'
import type { StreamRow } from '../../session-stream.ts'
import { Reading, useOver, VirtualList } from '../parts.tsx'
import { TEXTS } from '../texts.ts'
import { Markdown } from './markdown.tsx'
import type { SessionStream } from './stream.ts'

/** Of what is printed or written just now so many characters are shown, from its end. */
const MOST_LIVE = 4_000

/** What has happened in a session, and what is written and run in it just now, agents side by side. */
export function LiveView({ stream }: { stream: SessionStream }) {
  return (
    <div class="stream">
      <Rows stream={stream} />
      <Running stream={stream} />
      <Problem stream={stream} />
    </div>
  )
}

/** Apart from what is written just now, which is drawn thirty times a second. */
function Rows({ stream }: { stream: SessionStream }) {
  const over = useOver()
  const earlier = () => void stream.readEarlier(over.signal).catch(() => {})
  if (!stream.isRead.value) return <Reading problem="" />
  return (
    <>
      {stream.hasEarlier.value && (
        <button type="button" class="earlier" onClick={earlier}>
          Show earlier output
        </button>
      )}
      <VirtualList
        class="rows"
        label={TEXTS.tabs.live}
        items={stream.rows.value}
        keyOf={({ n }) => n}
        height={32}
        sticksToEnd
        onBegin={stream.hasEarlier.value ? earlier : undefined}
      >
        {row => <Row row={row} />}
      </VirtualList>
    </>
  )
}

function Problem({ stream }: { stream: SessionStream }) {
  return (
    <p role="status" class="outcome bad">
      {stream.problem.value}
    </p>
  )
}

const clock = new Intl.DateTimeFormat([], { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' })

function Row({ row: { at, said, item, instance } }: { row: StreamRow }) {
  return (
    <div class={`row ${said.tone}`}>
      <time dateTime={at}>{clock.format(Date.parse(at))}</time>
      <div>
        {instance !== undefined && <span class="who">{instance}</span>}
        {item?.kind === 'agent-message' ? (
          <Markdown text={item.text} />
        ) : item?.kind === 'command' ? (
          <Command item={item} end={said.end} />
        ) : (
          <>
            <span>{said.text}</span>
            {said.more.length > 0 && <More lines={said.more} />}
            <Detail item={item} />
          </>
        )}
      </div>
    </div>
  )
}

function More({ lines }: { lines: readonly string[] }) {
  return <pre>{lines.join('\n')}</pre>
}

/** A command by its first line, and how it ended; it opens to the rest, and to what it printed. */
function Command({ item, end }: { item: Extract<StreamRow['item'], { kind: 'command' }>; end: string | undefined }) {
  const whole = shownCommand(item.command).trim()
  const [first = ''] = whole.split('\n', 1)
  return (
    <details class="command">
      <summary>
        <code>{`$ ${first}`}</code>
        {end !== undefined && <span>{end.trim()}</span>}
      </summary>
      {whole !== first && <pre>{whole}</pre>}
      <pre>{item.output === '' ? 'It printed nothing.' : item.output}</pre>
    </details>
  )
}

/** What a file was changed by. */
function Detail({ item }: { item: StreamRow['item'] }): ComponentChildren {
  if (item?.kind === 'file-change')
    return (
      <details>
        <summary>{TEXTS.changed}</summary>
        {item.changes.map(({ path, diff }) => (
          <div key={path}>
            <p class="path">{path}</p>
            <pre>{diff}</pre>
          </div>
        ))}
      </details>
    )
  return null
}

/** What goes on just now: one column an agent. */
function Running({ stream }: { stream: SessionStream }) {
  const items = stream.live.value
  if (items.length === 0) return null
  const byAgent = Map.groupBy(items, ({ instance }) => instance ?? '')
  return (
    <div class="agents">
      {[...byAgent].map(([agent, all]) => (
        <section key={agent} aria-label={agent === '' ? TEXTS.theRound : agent}>
          {byAgent.size > 1 && <h2>{agent === '' ? TEXTS.theRound : agent}</h2>}
          {all.slice(-6).map(each => (
            <LiveText key={each.item.id} live={each} />
          ))}
        </section>
      ))}
    </div>
  )
}

/** Text that is being written: its end is in sight. */
function LiveText({ live }: { live: LiveItem }) {
  const { item, text } = live
  const place = useRef<HTMLPreElement>(null)
  const shown = text.slice(-MOST_LIVE)
  // However it was drawn.
  useEffect(() => {
    if (place.current !== null) place.current.scrollTop = place.current.scrollHeight
  })
  return (
    <div class="live">
      {item.kind === 'command' ? (
        <code class="quiet">{`$ ${shownCommand(item.command).trim().split('\n', 1)[0]}`}</code>
      ) : (
        <p class="quiet">writes</p>
      )}
      {shown !== '' && <pre ref={place}>{shown}</pre>}
    </div>
  )
}
