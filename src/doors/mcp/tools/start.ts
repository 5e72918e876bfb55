import * as v from 'valibot'
import { UserError } from '../../../base/errors.ts'
import { withoutUndefined } from '../../../base/json.ts'
import type { QueuedPrompt } from '../../../core/shapes/queue.ts'
import { findSession, latestSession } from '../../../project/find.ts'
import { OpenProject } from '../../../project/open-project.ts'
import { startSession } from '../../../project/start/detached.ts'
import { openQueue } from '../../../session/records/queue.ts'
import type { Records } from '../../../session/records/records.ts'
import { askWhoRuns } from '../../../session/records/run-lock.ts'
import { termsInWords } from '../../../tell/words/commands.ts'
import {
  aName,
  aText,
  type Call,
  clipped,
  defineTool,
  directory,
  limitsOf,
  type Tool,
  terms,
  yesOrNo,
} from '../tool.ts'

const GOAL = aText('a text that says what to do, and how to tell that it is done')
const MOST_PROMPTS = 100
const MOST_PROMPT = 2_000

const queued = v.object({
  id: v.string(),
  prompt: v.string(),
  at: v.string(),
  terms: v.pipe(v.string(), v.description('template, gates and limits in words; empty: none of its own')),
})

/** What begins sessions, now or behind others. */
export const startTools: readonly Tool[] = [
  defineTool({
    name: 'start_session',
    description:
      'Starts a codemachine session, which works on a goal for hours by itself. It answers at once with the id; follow it with wait_for and status.',
    effect: 'some',
    input: v.strictObject({
      directory,
      goal: v.optional(GOAL),
      ...terms,
      worktree: v.optional(
        v.pipe(
          v.union([v.boolean(), v.pipe(v.string(), v.minLength(1), v.maxLength(100))]),
          v.description(
            'true, or a name: work in a worktree with its own branch; false or left out: in the directory itself',
          ),
        ),
      ),
      accept_plan: v.optional(
        yesOrNo('true: accept its plan automatically; false: a person decides. A build with a goal never asks'),
      ),
    }),
    output: v.object({
      session: v.pipe(
        v.nullable(v.string()),
        v.description('its id; null: it has not begun within half a minute, and still tries'),
      ),
      directory: v.pipe(v.string(), v.description('where it works; pass this directory to the other tools')),
      pid: v.nullable(v.number()),
    }),
    async run(given, call) {
      const { goal, template, gates, limits, follows, worktree = false, accept_plan: acceptsPlan } = given
      if (goal === undefined && template === undefined)
        throw new UserError(
          'CM0104',
          'start_session needs a "goal", or a "template" that reads the specification of the directory.',
        )
      const records = await call.places.recordsOf(given.directory)
      if (worktree === false) await refuseBusy(records, call)
      const wanted = {
        goal: goal ?? null,
        ...withoutUndefined({ template, gates, limits: limitsOf(limits), acceptsPlan }),
        ...(worktree === false ? {} : { worktree }),
        ...(follows === undefined ? {} : { follows: await findSession(records, follows) }),
      }
      return await startSession(call.world, records, wanted, call.signal)
    },
  }),
  defineTool({
    name: 'queue_add',
    description:
      'Adds a prompt to the end of the queue of a directory. The codemachine that runs there makes a session of it.',
    effect: 'some',
    input: v.strictObject({ directory, prompt: GOAL, ...terms }),
    output: v.object({
      id: v.string(),
      runs: v.pipe(
        v.boolean(),
        v.description('whether a running codemachine will reach it; else it waits until one starts'),
      ),
    }),
    async run({ directory: where, prompt, template, gates, limits, follows }, call) {
      const records = await call.places.recordsOf(where)
      const { queue } = await OpenProject.open(call.world, { directory: records.directory })
      const from = follows === undefined ? {} : { follows: await findSession(records, follows) }
      const { id } = await queue.add(prompt, {
        ...withoutUndefined({ template, gates, limits: limitsOf(limits) }),
        ...from,
      })
      return { id, runs: (await whoRuns(records, call)) !== null }
    },
  }),
  defineTool({
    name: 'queue_list',
    description: 'Lists the queued prompts of a directory, the next one first.',
    effect: 'none',
    input: v.strictObject({ directory }),
    output: v.object({ prompts: v.array(queued), count: v.number(), problems: v.array(v.string()) }),
    async run({ directory: where }, call) {
      const { queue } = await call.places.recordsOf(where)
      const { prompts, problems } = await openQueue(queue).list()
      return { prompts: prompts.slice(0, MOST_PROMPTS).map(each => shown(each, call)), count: prompts.length, problems }
    },
  }),
  defineTool({
    name: 'queue_remove',
    description: 'Removes a queued prompt of a directory.',
    effect: 'some',
    input: v.strictObject({ directory, id: aName('the id of a prompt, as queue_list shows it, such as "000001"') }),
    output: v.object({ removed: v.string() }),
    async run({ directory: where, id }, call) {
      const { queue } = await call.places.recordsOf(where)
      await openQueue(queue).remove(id)
      return { removed: id }
    },
  }),
]

async function refuseBusy(records: Records, call: Call): Promise<void> {
  const runner = await whoRuns(records, call)
  if (runner === null) return
  const id = await latestSession(records, () => {})
  const what = id === null ? 'A codemachine' : `Session ${id}`
  throw new UserError('CM0601', `${what} runs in ${records.directory} already.`, {
    hint: 'Use queue_add to run it afterwards, or start_session with worktree: true to run it now.',
  })
}

async function whoRuns({ lock }: Records, { world }: Call) {
  return await askWhoRuns(lock, world.platform, () => {})
}

function shown({ id, prompt, at, ...terms }: QueuedPrompt, call: Call) {
  return { id, prompt: clipped(call, prompt, MOST_PROMPT), at, terms: termsInWords(terms) }
}
