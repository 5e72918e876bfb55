import type { Records } from '../../session/records.ts'
import type { Settings } from '../../settings/schema.ts'
import type { CliContext } from '../context.ts'
import type { RunFlags } from '../flags.ts'
import type { NewStart } from '../start/begin-start.ts'
import type { MoreFlags } from './ask-for-more.ts'
import type { PersonScreen } from './person-screen.ts'

/** What a slash command may reach. */
export interface SlashPlace {
  context: CliContext
  records: Records
  settings: Settings
  person: PersonScreen
  /** What can be started here; null where a session is only watched. */
  start: SlashStart | null
}

/** What can be set going where nothing runs yet. */
interface SlashStart {
  isRunning(): boolean
  flags(): RunFlags
  /** Goes on with a session, which may take so much from now on. */
  resume(session: string, more: MoreFlags): void
  /** Works through what waits. */
  workThroughQueue(): void
  /** Begins a session from the specification. */
  begin(session: NewStart): void
  /** For the runs to come. */
  choose(flags: Pick<RunFlags, 'model' | 'effort'>): void
}
