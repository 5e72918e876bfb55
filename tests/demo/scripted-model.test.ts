import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { systemClock } from '../../src/base/clock.ts'
import type { ModelRequest } from '../../src/demo/model/reply.ts'
import {
  applyPatch,
  attempts,
  functionCall,
  hold,
  message,
  type Reply,
  rawItem,
  reasoning,
  reply,
  roundsScript,
  type Script,
  shell,
  updatePlan,
  usageHeaders,
  webSearch,
  writeStdin,
} from '../../src/demo/model/reply.ts'
import { startScriptedModel } from '../../src/demo/model/scripted-model.ts'
import { type PlayedTurn, startCodex } from './codex-client.ts'

/** A script that also tells which steps were asked for, as `conversation.step.attempt`. */
function told(script: Script): { script: Script; asked: string[] } {
  const asked: string[] = []
  return {
    asked,
    script: request => {
      asked.push(`${request.conversation}.${request.step}.${request.attempt}`)
      return script(request)
    },
  }
}

/** In codex's sandbox, two commands that start at once in one directory can make one of them fail. */
const unsandboxed = { sandbox: 'danger-full-access' }

/** Plays one turn of a fresh thread against this script. */
async function playOnce(
  script: Script,
  codexModel?: string,
): Promise<PlayedTurn & { requests: readonly ModelRequest[] }> {
  await using model = await startScriptedModel({ script })
  await using codex = await startCodex(model, codexModel === undefined ? {} : { codexModel })
  const thread = await codex.startThread({ ...unsandboxed, developerInstructions: 'Be brief.' })
  return { ...(await codex.playTurn(thread, 'Go.')), requests: model.requests }
}

test('codex runs the command of a step, and the next step sees its output', async () => {
  const { script, asked } = told(
    roundsScript([
      [
        reply(shell('echo one'), shell('echo two; exit 3')),
        ({ lastOutputs }) => reply(message(`I saw ${lastOutputs.length}: ${lastOutputs.join(' ')}`)),
      ],
    ]),
  )
  const turn = await playOnce(script)
  expect(asked).toEqual(['0.0.0', '0.1.0'])
  const commands = turn.items.filter(item => item.type === 'commandExecution')
  expect(commands.map(item => [item.aggregatedOutput, item.exitCode])).toEqual(
    expect.arrayContaining([
      ['one\n', 0],
      ['two\n', 3],
    ]),
  )
  expect(turn.items.at(-1)?.text).toMatch(/^I saw 2: .*one.*two/s)
  expect(turn.requests[0]?.developerTexts.join()).toContain('Be brief.')
  expect(turn.requests[0]?.userTexts.at(-1)).toBe('Go.')
  expect(turn.requests[0]?.model).toBe('scripted-1')
})

test('a command that waits for input gets it', async () => {
  const sessionIn = (outputs: readonly string[]) => Number(/session ID (\d+)/.exec(outputs.join())?.[1])
  const turn = await playOnce(
    roundsScript([
      [
        reply(shell('read name; echo "hello $name"', { tty: true, yieldMs: 250 })),
        ({ lastOutputs }) => reply(writeStdin(sessionIn(lastOutputs), 'you\n', { yieldMs: 2000 })),
        ({ lastOutputs }) => reply(message(lastOutputs.join())),
      ],
    ]),
  )
  expect(turn.items.at(-1)?.text).toContain('hello you')
})

test.each(['scripted-1', 'gpt-5.5'])(
  'a patch changes files, whether %s is offered apply_patch or not',
  async codexModel => {
    const patch = '*** Begin Patch\n*** Add File: new.txt\n+hello\n*** End Patch'
    await using model = await startScriptedModel({ script: roundsScript([[reply(applyPatch(patch))]]) })
    await using codex = await startCodex(model, { codexModel })
    const turn = await codex.playTurn(await codex.startThread(), 'Go.')
    expect(turn.items.find(item => item.type === 'fileChange')?.status).toBe('completed')
    expect(await readFile(join(codex.directory, 'new.txt'), 'utf8')).toBe('hello\n')
  },
)

test('thoughts, plans, searches and phases of messages arrive as codex shows them', async () => {
  const turn = await playOnce(
    roundsScript([
      [
        reply(
          reasoning(['**First**\n\nlook', 'then act'], { content: ['raw thought'] }),
          message('On my way.', { phase: 'commentary' }),
          webSearch('cats'),
          updatePlan([{ step: 'Look', status: 'in_progress' }], 'Because.'),
        ),
        reply(rawItem({ type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'raw' }] })),
      ],
    ]),
  )
  expect(turn.status).toBe('completed')
  const [, thought, comment, search, raw] = turn.items
  expect(thought).toMatchObject({ summary: ['**First**\n\nlook', 'then act'], content: ['raw thought'] })
  expect(comment).toMatchObject({ text: 'On my way.', phase: 'commentary' })
  expect(search).toMatchObject({ type: 'webSearch', query: 'cats' })
  expect(raw).toMatchObject({ type: 'agentMessage', text: 'raw' })
  const plan = turn.notifications.find(one => one.method === 'turn/plan/updated')
  expect(plan?.params.plan).toEqual([{ step: 'Look', status: 'inProgress' }])
})

test('a text arrives whole in as many deltas as asked for', async () => {
  const text = 'abc👍🏽def'.repeat(150)
  const turn = await playOnce(roundsScript([[reply(message(text, { chunkSize: 1 }))]]))
  const deltas = turn.notifications.filter(one => one.method === 'item/agentMessage/delta')
  expect(deltas).toHaveLength(8 * 150)
  expect(deltas.map(one => one.params.delta).join('')).toBe(text)
  expect(turn.items.at(-1)?.text).toBe(text)
})

test('token counts and usage limits are told as the reply says', async () => {
  const script = roundsScript([
    [
      {
        ...reply(message('Done.')),
        usage: { input: 1000, cachedInput: 400, output: 50, reasoning: 20 },
        headers: usageHeaders({ primary: { usedPercent: 42, windowMinutes: 300, resetsAt: 1_900_000_000 } }),
      },
    ],
  ])
  const turn = await playOnce(script)
  const last = (method: string) => turn.notifications.findLast(one => one.method === method)?.params
  expect(last('thread/tokenUsage/updated')?.tokenUsage?.last).toMatchObject({
    inputTokens: 1000,
    cachedInputTokens: 400,
    outputTokens: 50,
    reasoningOutputTokens: 20,
  })
  expect(last('account/rateLimits/updated')?.rateLimits?.primary).toMatchObject({
    usedPercent: 42,
    windowDurationMins: 300,
    resetsAt: 1_900_000_000,
  })
})

test('codex waits while a step waits, and takes what comes after it', async () => {
  const beforeHeaders = Promise.withResolvers<void>()
  const inStream = Promise.withResolvers<void>()
  const asked = Promise.withResolvers<void>()
  const script = roundsScript([
    [
      async () => {
        asked.resolve()
        await beforeHeaders.promise
        return reply(message('first'), hold(inStream.promise), message('second'))
      },
    ],
  ])
  await using model = await startScriptedModel({ script })
  await using codex = await startCodex(model)
  const thread = await codex.startThread()
  const firstSeen = codex.next(one => one.method === 'item/completed' && one.params.item?.text === 'first')
  const turn = codex.playTurn(thread, 'Go.')
  await asked.promise
  beforeHeaders.resolve()
  await firstSeen
  inStream.resolve()
  expect((await turn).items.map(item => item.text)).toEqual([undefined, 'first', 'second'])
})

const never = new Promise(() => {})

test.each<[string, Reply]>([
  ['before its headers', { kind: 'hang-before-headers' }],
  ['in its stream', reply(message('whole'), hold(never))],
])('a step that hangs %s can be interrupted, and is due again', async (_, hanging) => {
  const hangs = Promise.withResolvers<void>()
  const hang = () => {
    hangs.resolve()
    return hanging
  }
  const { script, asked } = told(roundsScript([[attempts(hang, reply(shell('echo on')))]]))
  await using model = await startScriptedModel({ script })
  await using codex = await startCodex(model)
  const thread = await codex.startThread()
  const messageSeen = codex.next(one => one.params.item?.text === 'whole')
  const turn = codex.playTurn(thread, 'Go.')
  await (hanging.kind === 'items' ? messageSeen : hangs.promise)
  await codex.interrupt(thread)
  expect((await turn).status).toBe('interrupted')
  expect((await codex.playTurn(thread, 'Go on.')).status).toBe('completed')
  expect(asked).toEqual(['0.0.0', '0.0.1', '0.1.0'])
})

test('a step that is cut off is played again, and a command that had arrived is not run twice', async () => {
  const cut = { kind: 'cut', afterEvents: 4, how: 'reset' } as const
  const { script, asked } = told(
    roundsScript([
      [
        attempts(
          { ...reply(shell('echo run >> runs.txt')), end: cut },
          reply(message('Again.'), shell('cat runs.txt')),
        ),
        reply(message('Over.')),
      ],
    ]),
  )
  await using model = await startScriptedModel({ script })
  await using codex = await startCodex(model)
  const turn = await codex.playTurn(await codex.startThread(), 'Go.')
  expect(asked).toEqual(['0.0.0', '0.0.1', '0.1.0'])
  expect(turn.items.at(-1)?.text).toBe('Over.')
  expect(await readFile(join(codex.directory, 'runs.txt'), 'utf8')).toBe('run\n')
})

test('conversations that run side by side play their own rounds', async () => {
  const { script, asked } = told(
    roundsScript(
      ['a', 'b'].map(name => [reply(shell(`echo ${name}1`)), reply(shell(`echo ${name}2`)), reply(message(name))]),
    ),
  )
  await using model = await startScriptedModel({ script })
  await using codex = await startCodex(model)
  const turns = await Promise.all([0, 1].map(async () => codex.playTurn(await codex.startThread(unsandboxed), 'Go.')))
  const outputs = turns.map(turn => turn.items.flatMap(item => item.aggregatedOutput ?? item.text ?? []).join(' '))
  expect(outputs.toSorted()).toEqual(['a1\n a2\n a', 'b1\n b2\n b'])
  expect(asked.toSorted()).toEqual(['0.0.0', '0.1.0', '0.2.0', '1.0.0', '1.1.0', '1.2.0'])
})

test('sub-agents and compactions leave the steps of a conversation alone', async () => {
  const overfull = { input: 300_000, cachedInput: 0, output: 10, reasoning: 0 }
  const script = roundsScript(
    [
      [
        reply(functionCall('spawn_agent', { message: 'Help.' }, 'multi_agent_v1')),
        ({ lastOutputs }) =>
          reply(functionCall('wait_agent', { targets: [JSON.parse(lastOutputs[0] ?? '').agent_id] }, 'multi_agent_v1')),
        { ...reply(shell('echo much')), usage: overfull },
        reply(shell('echo after')),
        reply(message('Over.')),
      ],
    ],
    { subAgent: reply(message('Helped.')) },
  )
  const turn = await playOnce(script)
  expect(turn.requests.map(one => `${one.kind} ${one.isSubAgent ? 'of sub-agent' : one.step}`).toSorted()).toEqual([
    'compaction 3',
    'turn 0',
    'turn 1',
    'turn 2',
    'turn 3',
    'turn 4',
    'turn of sub-agent',
  ])
  expect(turn.items.at(-1)?.text).toBe('Over.')
})

test('a conversation that goes on against another server goes on at its step', async () => {
  const script = roundsScript([[reply(shell('echo one')), reply(message('two'))]])
  const { requests } = await playOnce(script)
  await using other = await startScriptedModel({ script })
  const last = requests[1]
  const answer = await fetch(`${other.url}/responses`, { method: 'POST', body: JSON.stringify(last?.body) })
  expect(await answer.text()).toContain('"text":"two"')
  expect(other.requests[0]?.step).toBe(1)
})

test('a mistake in a script ends the turn and says what it was', async () => {
  const turn = await playOnce(() => {
    throw new Error('no such round')
  })
  expect(turn.status).toBe('failed')
  expect(turn.error?.message).toContain('scripted model: no such round')
})

test('only the last requests are kept', async () => {
  await using model = await startScriptedModel({ script: () => reply(), keptRequests: 2 })
  for (const name of ['a', 'b', 'c']) {
    const body = JSON.stringify({ model: name, input: [] })
    await (await fetch(`${model.url}/responses`, { method: 'POST', body })).text()
  }
  expect(model.requests.map(one => one.model)).toEqual(['b', 'c'])
})

test('a paced reply waits before each delta, on the clock that was given', async () => {
  const waits: number[] = []
  const clock = {
    ...systemClock,
    wait: async (ms: number) => {
      waits.push(ms)
    },
  }
  const script = () => ({ ...reply(message('one two', { chunkSize: 4 })), deltaMs: 40 })
  await using model = await startScriptedModel({ script, clock })
  await (await fetch(`${model.url}/responses`, { method: 'POST', body: '{"input":[]}' })).text()
  expect(waits).toEqual([40, 40])
})
