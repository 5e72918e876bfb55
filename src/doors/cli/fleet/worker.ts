import { hostname } from 'node:os'
import { UserError } from '../../../base/errors.ts'
import { openFleet, whenThere } from '../../../fleet/fleet.ts'
import { TAG } from '../../../fleet/jobs.ts'
import { problemOfRepo } from '../../../fleet/repos.ts'
import { rightsOf } from '../../../fleet/worker/runner.ts'
import { runWorker } from '../../../fleet/worker/worker.ts'
import { oneLine } from '../../../tell/words/safe-text.ts'
import type { CliContext } from '../../screen/cli-context.ts'
import type { FleetFlags } from '../flags.ts'

/** Flags of `codemachine worker`, as typed. */
interface WorkerFlags extends FleetFlags {
  slots: string
  name?: string
  tags?: string
  repos?: string[]
  remote?: string
  keep: string
  once?: true
  codexBin?: string
  json?: true
}

/** A slot needs no connection of its own: what its session says goes out beside what the others say. */
const CONNECTIONS = 8
const NAME = /^[\w.-]{1,64}$/

/** `codemachine worker`: runs sessions of the fleet until it is told to end. */
export async function worker(context: CliContext, flags: WorkerFlags): Promise<number> {
  const { stdout, clock } = context
  const options = {
    name: checked(flags.name ?? hostname(), NAME, '--name', 'letters, digits, "." and "-", at most 64'),
    slots: wholeNumber(flags.slots, '--slots', 100),
    keep: wholeNumber(flags.keep, '--keep', 10_000),
    tags: tagsOf(flags.tags, '--tags'),
    repos: flags.repos ?? [],
    remote: flags.remote ?? null,
    once: flags.once === true,
  }
  const problem = options.remote === null ? null : problemOfRepo(options.remote)
  if (problem !== null) throw new UserError('CM1112', `--remote ${options.remote} ${problem}.`)
  const rights = await rightsOf(context)
  const open = () => openFleet(context, flags.queue, { most: CONNECTIONS, onProblem: say })
  await using fleet = options.once ? await open() : await whenThere(context, open, say)
  const codex = flags.codexBin === undefined ? [] : ['--codex-bin', flags.codexBin]
  return await runWorker(context, fleet, { ...options, rights, args: codex, own: context.own.command, say })

  function say(line: string): void {
    const text = oneLine(line, 2_000)
    const at = new Date(clock.now()).toISOString()
    stdout.write(flags.json ? `${JSON.stringify({ at, text })}\n` : `${at.slice(11, 19)} ${text}\n`)
  }
}

/** A list of tags as typed, with commas. */
export function tagsOf(typed: string | undefined, flag: string): string[] {
  const tags = (typed ?? '').split(',').flatMap(tag => tag.trim() || [])
  return tags.map(tag => checked(tag, TAG, flag, 'small letters and digits, such as gpu'))
}

function checked(text: string, pattern: RegExp, flag: string, mend: string): string {
  if (pattern.test(text)) return text
  throw new UserError('CM0103', `${flag} ${oneLine(text, 100)} cannot be used: use ${mend}.`)
}

function wholeNumber(typed: string, flag: string, most: number): number {
  const number = Number(typed)
  if (Number.isInteger(number) && number >= 1 && number <= most) return number
  throw new UserError('CM0103', `${flag} ${oneLine(typed, 100)} cannot be used: use a whole number from 1 to ${most}.`)
}
