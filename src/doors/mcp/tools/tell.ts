import * as v from 'valibot'
import { UserError } from '../../../base/errors.ts'
import { isTaken } from '../../../core/shapes/reply.ts'
import { askRun } from '../../../project/commands/commands.ts'
import { latestSession } from '../../../project/find.ts'
import type { Ask } from '../../../project/library.ts'
import { chosenAnswer, giveAnswer } from '../../../project/watch/questions.ts'
import { readSession } from '../../../project/watch/status.ts'
import { findQuestionAround, placesAround } from '../../../project/worktrees/find.ts'
import { questionId } from '../../../session/records/questions.ts'
import type { Records } from '../../../session/records/records.ts'
import { askWhoRuns } from '../../../session/records/run-lock.ts'
import { oneLine } from '../../../tell/words/safe-text.ts'
import { aName, aText, type Call, defineTool, directory, session, type Tool, yesOrNo } from '../tool.ts'

const told = v.object({
  message: v.pipe(v.string(), v.description('the effect, in a sentence')),
  directory: v.string(),
})

interface Given {
  directory?: string | undefined
  session?: string | undefined
}

const WHICH = { directory, session }

/** What is told to a session that runs. */
export const tellTools: readonly Tool[] = [
  defineTool({
    name: 'steer',
    description: 'Sends a text to the agent of the running round, or of the next round.',
    effect: 'some',
    input: v.strictObject({ ...WHICH, text: aText('a text for the agent') }),
    output: told,
    run: ({ text, ...which }, call) => tell(which, { type: 'steer', text }, call),
  }),
  defineTool({
    name: 'replan',
    description: 'Changes the plan of the running session. Afterwards the session pauses, unless you let it continue.',
    effect: 'some',
    input: v.strictObject({
      ...WHICH,
      text: aText('a text that says what should be different'),
      go_on: v.optional(yesOrNo('true or false: whether it continues with the changed plan without a person')),
    }),
    output: told,
    run: ({ text, go_on: goesOn, ...which }, call) =>
      tell(which, { type: 'replan', text, ...(goesOn ? { go: true } : {}) }, call),
  }),
  simple('pause', 'Pauses the running session when its round ends.', { type: 'pause' }),
  simple('unpause', 'Continues a paused session.', { type: 'unpause' }),
  simple('retry', 'Ends the wait of a session, such as for a usage limit; it continues at once.', {
    type: 'retry',
  }),
  defineTool({
    name: 'stop',
    description: 'Ends the running session when its round ends, or at once. It can be resumed.',
    effect: 'some',
    input: v.strictObject({
      ...WHICH,
      now: v.optional(yesOrNo('true or false: whether to interrupt the running round')),
    }),
    output: told,
    run: ({ now = false, ...which }, call) => tell(which, { type: 'stop', now }, call),
  }),
  defineTool({
    name: 'answer',
    description: 'Answers a question of an agent, or the decision that a session waits for.',
    effect: 'some',
    input: v.strictObject({
      directory,
      question: aName('the id of a question or decision, as questions shows it, such as "20261121_1/Q1"'),
      answer: aText('a text, or the id of one of its options'),
      text: v.optional(aText('a text that goes with the choice of a decision')),
      again: v.optional(yesOrNo('true or false: whether to replace an earlier answer')),
    }),
    output: told,
    run: answerQuestion,
  }),
]

function simple(name: string, description: string, ask: Ask): Tool {
  return defineTool({
    name,
    description,
    effect: 'some',
    input: v.strictObject(WHICH),
    output: told,
    run: (which, call) => tell(which, ask, call),
  })
}

async function tell(which: Given, ask: Ask, call: Call): Promise<v.InferOutput<typeof told>> {
  const records = await runningRecords(which, call)
  const reply = await askRun(call.world, records, ask)
  if (reply === null) throw nobody(records)
  if (!isTaken(reply)) throw new UserError('CM0617', reply.message, { hint: 'status says what it does.' })
  return { message: reply.message, directory: records.directory }
}

/** Where the session runs that is meant. A `UserError` if it is not the one that runs, or none does. */
async function runningRecords({ directory: where, session: wanted }: Given, call: Call): Promise<Records> {
  const isRunning = async ({ lock }: Records) => (await askWhoRuns(lock, call.world.platform, () => {})) !== null
  if (wanted !== undefined) {
    const { records, id } = await call.places.session(where, wanted)
    const running = (await isRunning(records)) ? await latestSession(records, () => {}) : null
    if (running === id) return records
    throw new UserError('CM0613', `Session ${id} does not run.`, {
      hint: running === null ? `Nothing runs in ${records.directory}.` : `${running} runs in ${records.directory}.`,
    })
  }
  const own = await call.places.recordsOf(where)
  if (await isRunning(own)) return own
  const running: Records[] = []
  for (const { records } of await placesAround(own, () => {})) if (await isRunning(records)) running.push(records)
  const [only, ...others] = running
  if (only === undefined) throw nobody(own)
  if (others.length === 0) return await call.places.recordsOf(only.directory)
  throw new UserError(
    'CM0604',
    'More than one session runs in the worktrees of that directory; name one of these worktrees.',
    {
      hint: running.map(each => each.directory).join(', '),
    },
  )
}

function nobody({ directory: where }: Records): UserError {
  return new UserError('CM0613', `No codemachine runs in ${where}, so nobody can receive this.`, {
    hint: 'start_session starts a session; queue_add queues one.',
  })
}

async function answerQuestion(
  given: {
    directory?: string | undefined
    question: string
    answer: string
    text?: string | undefined
    again?: boolean | undefined
  },
  call: Call,
): Promise<v.InferOutput<typeof told>> {
  const { question: typed, answer, text, again = false } = given
  const slash = typed.lastIndexOf('/')
  const name = typed.slice(slash + 1)
  const isQuestion = /^q?\d+$/i.test(name)
  if (!isQuestion && slash === -1)
    throw new UserError('CM0615', `There is no question "${oneLine(typed, 100)}".`, { hint: 'questions lists them.' })
  if (!isQuestion) return await decide({ ...given, session: typed.slice(0, slash), decision: name }, call)
  if (text !== undefined) throw new UserError('CM0102', 'A question takes only "answer"; leave "text" out.')
  const records = await call.places.recordsOf(given.directory)
  const found = await findQuestionAround(records, typed, { platform: call.world.platform, onProblem: () => {} })
  const id = found.worktree === null ? questionId(found.asked) : `${found.worktree}:${questionId(found.asked)}`
  const chosen = chosenAnswer(answer, found.asked, id)
  const message = await giveAnswer(call.world, { ...found, id }, { answer: chosen, again })
  return { message, directory: found.records.directory }
}

async function decide(
  {
    directory: where,
    session: of,
    decision: id,
    answer: choice,
    text,
  }: Given & { decision: string; answer: string; text?: string | undefined },
  call: Call,
): Promise<v.InferOutput<typeof told>> {
  const { records, id: found } = await call.places.session(where, of)
  const runner = await askWhoRuns(records.lock, call.world.platform, () => {})
  const decision = (await readSession(records, found, runner, call.world))?.decision ?? null
  if (decision?.id !== id)
    throw new UserError('CM0615', `Session ${found} does not ask about ${oneLine(id, 100)} now.`, {
      hint: 'questions lists what is open.',
    })
  if (decision.secret !== undefined)
    throw new UserError('CM0615', `${found} asks for a secret, and only a person can give it.`, {
      hint: `They type: codemachine secret set ${decision.secret.key}`,
    })
  const said = text === undefined ? {} : { text }
  return await tell(
    { directory: records.directory, session: found },
    { type: 'decide', session: found, decision: id, choice, ...said },
    call,
  )
}
