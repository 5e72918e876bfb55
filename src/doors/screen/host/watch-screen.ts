import { Interrupted, unreachable } from '../../../base/errors.ts'
import type { WatchUpdate } from '../../../project/library.ts'
import { settingsOf } from '../../../project/open-run.ts'
import { followSession } from '../../../project/watch/feed.ts'
import { sendCommand } from '../../../session/records/control.ts'
import type { Records } from '../../../session/records/records.ts'
import type { CliContext } from '../cli-context.ts'
import { PersonScreen, type SlashPlace } from './person-screen.ts'
import { reportLines } from './sessions-screen.ts'
import { commandsOf, runSlashCommand } from './slash.ts'

/** How long a run may take to answer a command, ms. */
const ANSWER_MS = 5_000

/**
 * Shows a session that another process runs, until it is over or the person leaves; what runs goes on.
 * @param asksAtLeave whether who leaves is asked if it is to be stopped
 */
export async function openWatchScreen(
  context: CliContext,
  records: Records,
  id: string,
  asksAtLeave = false,
): Promise<number> {
  const { clock, pid, platform, signal } = context
  const loaded = await settingsOf(context, records.directory, {})
  const { settings } = loaded
  const leaving = new AbortController()
  const ask: PersonScreen['ask'] = ask =>
    sendCommand(records.control, { ...ask, at: new Date(clock.now()).toISOString() }, { clock, timeoutMs: ANSWER_MS })
  let farewell: string | null = null
  let ended: string | null = null
  let isAsked = false
  const leave = (person: PersonScreen) => {
    // Who presses Ctrl+C once more wants to get out.
    if (!asksAtLeave || isAsked || !person.screen.model.isRunning) return leaving.abort()
    isAsked = true
    void askAtLeave(person, id)
      .then(said => {
        isAsked = false
        farewell = said
        if (said !== null) leaving.abort()
      })
      .catch(error => void person.fail(error))
  }
  const place = (): SlashPlace => ({
    context,
    records,
    settings,
    person: shown,
    start: null,
    letGo: async () => leaving.abort(),
  })
  const shown: PersonScreen = new PersonScreen({
    context,
    records,
    loaded,
    isWatching: true,
    control: {
      ask,
      // A screen that watches counts as a person already, so no countdown runs.
      attend: () => false,
      // A session is always shown.
      begin: () => {},
      command: (name, rest) => runSlashCommand(place(), name, rest),
      commands: () => commandsOf(place()),
      leave: () => leave(shown),
      gone: () => leaving.abort(),
    },
  })
  {
    await using person = shown
    person.showSession(id)
    const feed = followSession({
      records,
      id,
      platform,
      pid,
      clock,
      signal: AbortSignal.any([signal, leaving.signal]),
      onProblem: problem => person.screen.notice(problem, 'warning'),
    })
    for await (const fed of feed) {
      show(fed, person)
      // What is published comes after the end.
      if (fed.kind === 'event' && fed.event.type !== 'published')
        ended = fed.event.type === 'session-ended' ? fed.event.session : null
    }
  }
  if (farewell !== null) context.stdout.write(`${farewell}\n`)
  else if (ended !== null && !signal.aborted) await sayHowItEnded(context, records, ended, shown)
  if (signal.aborted) throw new Interrupted(signal.reason)
  return 0
}

/** Prints the card of a session that has ended, as its own screen does. */
async function sayHowItEnded(context: CliContext, records: Records, id: string, person: PersonScreen): Promise<void> {
  const { stdout } = context
  const lines = await reportLines(
    context,
    { records, id },
    {
      columns: stdout.columns ?? 80,
      theme: person.screen.model.theme,
      named: records.directory === context.cwd ? null : records.directory,
      onWarning: () => {},
    },
  )
  if (lines !== null) stdout.write(`\n${lines.join('\n')}\n`)
}

/** Asks whether the session goes on without the screen; what is said once that is closed, null: the person stays. */
async function askAtLeave(person: PersonScreen, id: string): Promise<string | null> {
  const answer = await person.screen.choose({
    title: 'Leave it running, or stop it?',
    options: [
      { id: 'leave', label: 'Leave it running', hint: 'codemachine attach shows it again' },
      {
        id: 'stop',
        label: 'Stop it after this round',
        hint: 'codemachine resume continues from there',
        confirms: true,
      },
      { id: 'now', label: 'Stop it now', hint: 'the round is interrupted', confirms: true },
    ],
    leavesOnInterrupt: true,
  })
  if (answer.kind === 'left') return wordsForLeft(id)
  if (answer.kind !== 'chosen') return null
  if (answer.id === 'leave') return wordsForLeft(id)
  return (await person.ask({ type: 'stop', now: answer.id === 'now' })).message
}

function wordsForLeft(id: string): string {
  return `${id} continues. To see it again: codemachine attach`
}

function show(fed: WatchUpdate, person: PersonScreen): void {
  const { screen } = person
  switch (fed.kind) {
    case 'event':
      screen.view.event(fed.event, fed.state)
      break
    case 'live':
      screen.view.live(fed.event, fed.at)
      break
    case 'next-session':
      person.showSession(fed.id)
      break
    case 'attached':
    case 'ended':
      break
    case 'gone':
      screen.say('It was cut off and is no longer running. codemachine resume continues it.', 'warning')
      break
    case 'cut-off':
      screen.say('It is not running. codemachine resume continues it.', 'warning')
      break
    default:
      unreachable(fed)
  }
}
