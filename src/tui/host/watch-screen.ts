import type { WatchUpdate } from '../../app/library.ts'
import { settingsOf } from '../../app/open-run.ts'
import { followSession } from '../../app/watch/feed.ts'
import { Interrupted, unreachable } from '../../base/errors.ts'
import { sendCommand } from '../../records/control.ts'
import type { Records } from '../../records/records.ts'
import type { CliContext } from '../cli-context.ts'
import { PersonScreen } from './person-screen.ts'
import { commandsOf, runSlashCommand, type SlashPlace } from './slash.ts'

/** How long a run may take to answer a command, ms. */
const ANSWER_MS = 5_000

/** Shows a session that another process runs, until it is over or the person leaves; what runs goes on. */
export async function openWatchScreen(context: CliContext, records: Records, id: string): Promise<number> {
  const { clock, pid, platform, signal } = context
  const { settings } = await settingsOf(context, records.directory, {})
  const leaving = new AbortController()
  const ask: PersonScreen['ask'] = ask =>
    sendCommand(records.control, { ...ask, at: new Date(clock.now()).toISOString() }, { clock, timeoutMs: ANSWER_MS })
  const place = (): SlashPlace => ({ context, records, settings, person, start: null })
  await using person: PersonScreen = new PersonScreen({
    context,
    records,
    settings,
    isWatching: true,
    control: {
      ask,
      // A session is always shown.
      begin: () => {},
      command: (name, rest) => runSlashCommand(place(), name, rest),
      commands: () => commandsOf(place()),
      leave: () => leaving.abort(),
      gone: () => leaving.abort(),
    },
  })
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
  for await (const fed of feed) show(fed, person)
  if (signal.aborted) throw new Interrupted(signal.reason)
  return 0
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
      screen.say('Nobody runs it any more: it was cut off. codemachine resume goes on with it.', 'warning')
      break
    case 'cut-off':
      screen.say('Nobody runs it. codemachine resume goes on with it.', 'warning')
      break
    default:
      unreachable(fed)
  }
}
