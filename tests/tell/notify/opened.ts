import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Recorded } from '../../../src/core/events/events.ts'
import { NOWHERE } from '../../../src/platform/files.ts'
import type { ChannelOptions } from '../../../src/tell/notify/channels.ts'
import { type Notifier, type NotifySettings, openNotifier } from '../../../src/tell/notify/notifier.ts'
import { HandClock } from '../../support/hand-clock.ts'
import { state } from './samples.ts'

/** Temporary directories are no agent's here. */

const SETTINGS: NotifySettings = {
  command: null,
  webhook: null,
  bell: false,
  events: ['ended', 'needs-person', 'waiting'],
}

/** A notifier with a home of its own, and what it has said and written. */
export interface Opened extends AsyncDisposable {
  notifier: Notifier
  home: string
  clock: HandClock
  problems: string[]
  written: string[]
  tell(event: Recorded): void
  /** Resolves with the problems once there are so many. */
  saidProblems(count: number): Promise<string[]>
}

export async function openForTest(
  settings: (home: string) => Partial<NotifySettings>,
  more: Partial<ChannelOptions> & { isTTY?: boolean } = {},
): Promise<Opened> {
  const home = await mkdtemp(join(tmpdir(), 'codemachine-notify-'))
  const clock = new HandClock()
  const problems: string[] = []
  const written: string[] = []
  let heard = () => {}
  const notifier = openNotifier(
    { ...SETTINGS, ...settings(home) },
    {
      clock,
      env: { PATH: process.env.PATH },
      platform: process.platform,
      home,
      where: NOWHERE,
      bell: more.isTTY ? { write: text => written.push(text) } : null,
      onProblem: sentence => {
        problems.push(sentence)
        heard()
      },
      ...more,
    },
  )
  return {
    notifier,
    home,
    clock,
    problems,
    written,
    tell: event => notifier.event(event, state),
    saidProblems: async count => {
      while (problems.length < count) {
        const { promise, resolve, reject } = Promise.withResolvers<void>()
        const bound = setTimeout(() => reject(new Error(`Only these were said: ${problems.join('\n')}`)), 20_000)
        heard = resolve
        await promise.finally(() => clearTimeout(bound))
      }
      return problems
    },
    [Symbol.asyncDispose]: async () => {
      const closed = notifier.close()
      clock.runOut()
      await closed
      await rm(home, { recursive: true, force: true })
    },
  }
}
