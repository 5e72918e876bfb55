import { execFileSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, readFile, realpath, rename, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { type AgentRequest, formatRequest, inboxFiles, inboxFolder } from '../../../src/agents/inbox.ts'
import type { RunRequest } from '../../../src/project/agent-door/agent-inbox.ts'
import { serveInbox } from '../../../src/project/agent-door/agent-inbox.ts'
import { type Asked, askSession, isShownOutside, showOutside } from '../../../src/project/agent-door/ask-session.ts'
import { endAfterEach } from '../../engines/codex/end-after-each.ts'
import { TestClock } from '../../support/test-clock.ts'

const request: AgentRequest = {
  agent: 'frontend-dev',
  task: 'T1: a page',
  paths: ['web'],
  thread: 'thread-1',
  stream: false,
}
const soon = { timeout: 20_000, interval: 10 }

let clock: TestClock
let root: string
let directory: string
let inbox: string
beforeEach(async () => {
  clock = new TestClock()
  root = await realpath(await mkdtemp(join(tmpdir(), 'codemachine-inbox-')))
  directory = join(root, 'work')
  inbox = join(directory, inboxFolder)
  await mkdir(directory)
})
afterEach(() => rm(root, { recursive: true }))
// The last is the first that is done.
const atEnd = endAfterEach()

/** A session that does what it is asked by `run`. */
async function serve(run: RunRequest) {
  const problems: string[] = []
  const served = await serveInbox({ directory, run, clock, onProblem: problem => problems.push(problem) })
  return { problems, served: atEnd.use(served) }
}

/** Somebody who asks. */
function ask(more: Partial<AgentRequest> = {}, isGone?: () => Promise<boolean>) {
  const waiting: string[] = []
  const heard: string[] = []
  const started: string[] = []
  const ending = new AbortController()
  const asked: Promise<Asked | { thrown: unknown }> = askSession(
    { ...request, ...more },
    {
      directory,
      clock,
      signal: ending.signal,
      ...(isGone && { isGone }),
      onWaiting: sentence => waiting.push(sentence),
      onStarted: instance => started.push(instance),
      onText: text => heard.push(text),
    },
  ).catch((thrown: unknown) => ({ thrown }))
  return { asked, heard: () => heard.join(''), started, waiting, end: (signal: string) => ending.abort(signal) }
}

/** A request that somebody has written who does nothing more. */
async function post(text = JSON.stringify({ v: 1, ...request })): Promise<string> {
  const id = newId()
  await mkdir(inbox, { recursive: true })
  // Half of it would be taken, too.
  await writeFile(join(inbox, 'half'), text)
  await rename(join(inbox, 'half'), join(inbox, inboxFiles.request(id)))
  return id
}

const newId = () => `${String(clock.now()).padStart(15, '0')}-${randomUUID()}`

const reply = async (id: string): Promise<unknown> =>
  JSON.parse(await readFile(join(inbox, inboxFiles.reply(id)), 'utf8'))

/** Does nothing until nobody waits for it any more. */
function untilOver() {
  const begun = Promise.withResolvers<void>()
  const ended = Promise.withResolvers<void>()
  const run: RunRequest = async (_, over, { started }) => {
    started('frontend-dev-20261122T004530123')
    begun.resolve()
    await new Promise(resolve => over.addEventListener('abort', resolve))
    ended.resolve()
    return { text: 'It was ended.', success: false, status: 'terminated' }
  }
  return { run, begun: begun.promise, ended: ended.promise }
}

describe('who asks a running session', () => {
  test('gets the result of what was asked, word for word, and leaves nothing in the inbox', async () => {
    const taken: AgentRequest[] = []
    await serve(async (asked, _, { started, text }) => {
      taken.push(asked)
      started('frontend-dev-20261122T004530123')
      text('Nobody wants to hear this.')
      return { text: 'Made a page.\n\nIt is blue.', success: true }
    })
    const { asked, heard, started } = ask()
    expect(await asked).toEqual({
      kind: 'answered',
      reply: { state: 'completed', instance: 'frontend-dev-20261122T004530123', text: 'Made a page.\n\nIt is blue.' },
      streamed: 'nothing',
    })
    expect([taken, heard(), started]).toEqual([[request], '', ['frontend-dev-20261122T004530123']])
    await vi.waitFor(async () => expect(await readdir(inbox)).toEqual([]), soon)
  })

  test('hears what the agent says as it says it', async () => {
    const goOn = Promise.withResolvers<void>()
    await serve(async (_, _over, { text }) => {
      text('I begin. ')
      await goOn.promise
      text('I am done.')
      return { text: 'I am done.', success: true, instance: 'frontend-dev-1' }
    })
    const { asked, heard } = ask({ stream: true })
    await vi.waitFor(() => expect(heard()).toBe('I begin. '), soon)
    goOn.resolve()
    expect(await asked).toMatchObject({ reply: { state: 'completed' }, streamed: 'whole' })
    expect(heard()).toBe('I begin. I am done.')
  })

  test.each([
    ['refused', { text: 'There is no agent "x".', success: false }],
    ['error', { text: 'It failed.', success: false, status: 'error' }],
    ['terminated', { text: 'The round ended.', success: false, status: 'terminated' }],
  ] as const)('is told that it was %s, and why', async (state, answer) => {
    await serve(async () => answer)
    expect(await ask().asked).toMatchObject({ kind: 'answered', reply: { state, text: answer.text } })
  })

  test('is told what went wrong where the session could not do it at all', async () => {
    await serve(() => Promise.reject(new Error('codex did not start')))
    expect(await ask().asked).toMatchObject({ reply: { state: 'error', text: 'codex did not start' } })
  })

  test('waits as long as the session does, hours if it has to', async () => {
    const goOn = Promise.withResolvers<void>()
    await serve(async (_, over) => {
      await goOn.promise
      return { text: over.aborted ? 'Given up.' : 'At last.', success: true }
    })
    const { asked } = ask()
    const both = async () => {
      const names = (await readdir(inbox)).filter(name => /taken|reply/.test(name)).sort()
      expect(names).toHaveLength(2)
      return Promise.all(names.map(name => stat(join(inbox, name))))
    }
    let before = await vi.waitFor(both, soon)
    for (let beat = 0; beat < 5; beat++) {
      await clock.advance(50_000)
      await vi.waitFor(async () => {
        const now = await both()
        expect(now.every(({ mtimeMs }, n) => mtimeMs > (before[n]?.mtimeMs ?? 0))).toBe(true)
        before = now
      }, soon)
    }
    goOn.resolve()
    expect(await asked).toMatchObject({ reply: { state: 'completed', text: 'At last.' } })
  })

  test('can take it back: what runs for it is ended', async () => {
    const { run, begun, ended } = untilOver()
    await serve(run)
    const { asked, end } = ask()
    await begun
    end('SIGTERM')
    await ended
    expect(await asked).toEqual({ thrown: expect.objectContaining({ name: 'Interrupted', exitCode: 143 }) })
    await vi.waitFor(async () => expect(await readdir(inbox)).toEqual([]), soon)
  })

  test('is told after a quarter of a minute that nobody takes it, and it is taken back', async () => {
    const { asked } = ask()
    await vi.waitFor(async () => expect(await readdir(inbox)).toHaveLength(1), soon)
    await clock.advance(15_000)
    expect(await asked).toEqual({ kind: 'not-taken' })
    expect(await readdir(inbox)).toEqual([])
  })

  test('is told after a minute that the session which took it has gone', async () => {
    const { asked } = ask()
    const [name = ''] = await vi.waitFor(async () => {
      const names = (await readdir(inbox)).filter(each => each.endsWith('.request.json'))
      expect(names).toHaveLength(1)
      return names
    }, soon)
    await rename(join(inbox, name), join(inbox, name.replace('.request.json', '.taken')))
    await clock.advance(61_000)
    expect(await asked).toEqual({ kind: 'gone' })
    expect(await readdir(inbox)).toEqual([])
  })

  test('is told at once that the session has gone, where its process can be seen', async () => {
    let isGone = false
    const { asked } = ask({}, async () => isGone)
    const [name = ''] = await vi.waitFor(async () => {
      const names = (await readdir(inbox)).filter(each => each.endsWith('.request.json'))
      expect(names).toHaveLength(1)
      return names
    }, soon)
    await rename(join(inbox, name), join(inbox, name.replace('.request.json', '.taken')))
    isGone = true
    await clock.advance(2000)
    expect(await asked).toEqual({ kind: 'gone' })
  })

  test('is told for whom the agent waits, once for each change', async () => {
    const turn = Promise.withResolvers<void>()
    await serve(async (_, __, { waits, started }) => {
      waits(['backend-dev', 'qa-engineer'])
      await turn.promise
      started('frontend-dev-20261122T004530123')
      return { text: 'Made a page.', success: true }
    })
    const { asked, waiting } = ask()
    await vi.waitFor(() => expect(waiting).toEqual(['frontend-dev waits for backend-dev, qa-engineer.']), soon)
    turn.resolve()
    expect(await asked).toMatchObject({ kind: 'answered', reply: { text: 'Made a page.' } })
    expect(waiting).toHaveLength(1)
  })

  test('cannot ask through a link that stands in the place of the inbox', async () => {
    await mkdir(join(directory, '.codemachine'))
    await mkdir(join(root, 'outside'))
    await symlink(join(root, 'outside'), inbox)
    const { problems } = await serve(async () => ({ text: '', success: true }))
    expect(await ask().asked).toEqual({
      thrown: expect.objectContaining({ message: expect.stringContaining('inbox is a link'), exitCode: 4 }),
    })
    expect(await readdir(join(root, 'outside'))).toEqual([])
    expect(problems).toEqual([expect.stringContaining('is a link, so no agent can be asked through it')])
    await rm(inbox)
    expect(await ask().asked).toMatchObject({ reply: { state: 'completed' } })
  })
})

describe('what nobody waits for any more is ended', () => {
  test('when its file is gone', async () => {
    const { run, begun, ended } = untilOver()
    await serve(run)
    const id = await post()
    await begun
    await rm(join(inbox, inboxFiles.taken(id)))
    await ended
    await vi.waitFor(async () => expect(await readdir(inbox)).toEqual([]), soon)
  })

  test('when whoever asked has given no sign of life for a minute', async () => {
    const { run, begun, ended } = untilOver()
    await serve(run)
    await post()
    await begun
    await clock.advance(61_000)
    await ended
    await vi.waitFor(async () => expect(await readdir(inbox)).toEqual([]), soon)
  })

  test('when the session ends, and who asked is told so', async () => {
    const { run, begun } = untilOver()
    const { served } = await serve(run)
    const { asked } = ask()
    await begun
    await served[Symbol.asyncDispose]()
    expect(await asked).toMatchObject({ reply: { state: 'terminated', text: 'It was ended.' } })
  })
})

describe('in an inbox where anything may lie', () => {
  test('what cannot be taken is told once, and holds nobody up', async () => {
    const { problems } = await serve(async () => ({ text: 'Done.', success: true }))
    for (let n = 0; n < 3; n++) {
      const id = newId()
      await mkdir(join(inbox, inboxFiles.taken(id), 'full'), { recursive: true })
      await writeFile(join(inbox, inboxFiles.request(id)), '')
      expect(await ask().asked).toMatchObject({ reply: { state: 'completed' } })
    }
    expect(problems).toEqual([expect.stringContaining('cannot be asked')])
    expect(problems[0]).toContain('<id>.taken')
  })

  test('each request that is none is refused with a reason, and those that are are answered', async () => {
    const taken: string[] = []
    await serve(async ({ agent }) => {
      taken.push(agent)
      return { text: 'Done.', success: true }
    })
    await writeFile(join(root, 'secret'), JSON.stringify({ v: 1, ...request, agent: 'secret' }))
    const [link, pipe, folder] = [newId(), newId(), newId()]
    await symlink(join(root, 'secret'), join(inbox, inboxFiles.request(link)))
    execFileSync('mkfifo', [join(inbox, inboxFiles.request(pipe))])
    await mkdir(join(inbox, inboxFiles.request(folder), 'with', 'more'), { recursive: true })
    const long = await post('x'.repeat(10 * 1024 * 1024))
    const rubbish = await post('{"v":1,"agent":')
    expect(await ask().asked).toMatchObject({ reply: { state: 'completed' } })
    const reasons = { link: 'it is a link', pipe: 'it is not a regular file', folder: 'it is not a regular file' }
    for (const [id, why] of [
      [link, reasons.link],
      [pipe, reasons.pipe],
      [folder, reasons.folder],
      [long, 'larger than 0.5 MiB'],
      [rubbish, 'the file is no JSON'],
    ] as const) {
      await vi.waitFor(async () => {
        expect(await reply(id)).toMatchObject({
          v: 1,
          state: 'refused',
          exitCode: 4,
          text: expect.stringContaining(why),
        })
      }, soon)
    }
    expect(taken).toEqual(['frontend-dev'])
    expect(existsSync(join(root, 'secret'))).toBe(true)
  })

  test('a thousand pieces of rubbish hold up a request for a moment only', async () => {
    await mkdir(inbox, { recursive: true })
    const names = Array.from({ length: 1000 }, (_, n) => (n % 10 === 0 ? inboxFiles.request(newId()) : `rubbish-${n}`))
    await Promise.all(names.map(name => writeFile(join(inbox, name), 'rubbish')))
    await serve(async () => ({ text: 'Done.', success: true }))
    expect(await ask().asked).toMatchObject({ reply: { state: 'completed' } })
  })

  test('more than can be had in hand are refused', async () => {
    const { run } = untilOver()
    const { served } = await serve(run)
    const ids: string[] = []
    for (let n = 0; n < 17; n++) ids.push(await post())
    await vi.waitFor(async () => {
      const states = await Promise.all(ids.map(async id => ((await reply(id)) as { state: string }).state))
      expect(states.filter(state => state === 'started')).toHaveLength(16)
      expect(states.filter(state => state === 'refused')).toHaveLength(1)
    }, soon)
    await served[Symbol.asyncDispose]()
  })

  test('what an earlier session left is removed, and other files stay', async () => {
    const ids = [await post(), await post(), newId()]
    await rename(join(inbox, inboxFiles.request(ids[0] ?? '')), join(inbox, inboxFiles.taken(ids[0] ?? '')))
    await writeFile(join(inbox, inboxFiles.reply(ids[2] ?? '')), '{}')
    await writeFile(join(inbox, 'notes.txt'), 'of the person')
    clock.sleepMachine(16_000)
    const taken: string[] = []
    await serve(async ({ task }) => {
      taken.push(task)
      return { text: 'Done.', success: true }
    })
    expect(await readdir(inbox)).toEqual(['notes.txt'])
    expect(await ask().asked).toMatchObject({ reply: { state: 'completed' } })
    expect(taken).toEqual([request.task])
  })

  test('a request from just before the session served its inbox is answered', async () => {
    const id = await post()
    await serve(async () => ({ text: 'Done.', success: true }))
    await vi.waitFor(async () => expect(await reply(id)).toMatchObject({ state: 'completed' }), soon)
  })

  test('an answer that nobody fetches is removed after ten minutes', async () => {
    await serve(async () => ({ text: 'Done.', success: true }))
    const id = await post()
    await vi.waitFor(async () => expect(await reply(id)).toMatchObject({ state: 'completed' }), soon)
    await clock.advance(11 * 60_000)
    await vi.waitFor(async () => expect(await readdir(inbox)).toEqual([]), soon)
  })
})

test('who can write into the records is known to be outside of the sandbox, and only for what was asked', async () => {
  const records = join(root, 'records')
  await mkdir(records)
  const known: boolean[] = []
  const run: RunRequest = async (_, _over, _feed, isOutside) => {
    known.push(isOutside)
    return { text: 'Done.', success: true }
  }
  atEnd.use(await serveInbox({ directory, clock, records, run }))
  const heard = { onWaiting: () => {}, onStarted: () => {}, onText: () => {} }
  const options = { directory, clock, signal: new AbortController().signal, ...heard }
  for (const from of [records, join(root, 'unseen')]) await askSession(request, { ...options, records: from })
  await ask().asked
  expect(known).toEqual([true, false, false])
  expect(await readdir(join(records, 'asked'))).toEqual([])
  await showOutside(records, 'id', 'one')
  expect([await isShownOutside(records, 'id', 'one'), await isShownOutside(records, 'id', 'two')]).toEqual([
    true,
    false,
  ])
})

test('a task that does not fit is said so before anybody is asked', async () => {
  const { asked } = ask({ task: 'x'.repeat(300_000) })
  expect(await asked).toEqual({ thrown: expect.objectContaining({ message: expect.stringContaining('256 KiB') }) })
  expect(formatRequest(request)).toHaveProperty('text')
  expect(existsSync(inbox)).toBe(false)
})
