import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { parseTime } from '../../src/fleet/submission.ts'
import { codemachineHere } from '../support/in-process.ts'
import { makePlace, type TestPlace } from '../support/place.ts'
import { promise } from '../support/promise.ts'

let place: TestPlace
beforeAll(async () => {
  place = await makePlace('', { git: false })
  // Neither of this machine's own.
  delete place.env.CODEMACHINE_QUEUE
})
afterAll(() => place[Symbol.asyncDispose]())

/** A date and time as TOML has it. */
const inDays = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString()

const REPO = 'repo = "git@host:team/app.git"'

/** What `submit --file` makes of a file, without a database. */
async function dryRun(text: string, env: Record<string, string> = {}) {
  await writeFile(join(place.directory, 'night.toml'), text)
  const { exitCode, stdout, stderr } = await codemachineHere(
    place,
    ['submit', '--file', 'night.toml', '--dry-run', '--json'],
    { env },
  )
  return { exitCode, stderr, sessions: stdout === '' ? [] : JSON.parse(stdout).sessions }
}

/** What is said of a file that cannot be submitted, a line a mistake. */
async function mistakesIn(text: string, env: Record<string, string> = {}): Promise<string[]> {
  const { exitCode, stderr, sessions } = await dryRun(text, env)
  expect({ exitCode, sessions }).toEqual({ exitCode: 2, sessions: [] })
  const [head, ...lines] = stderr.trimEnd().split('\n')
  expect(head).toMatch(/^codemachine: Nothing was submitted(:|, because of \d+ mistakes:) \(CM1110\)$/)
  return lines
}

test('each session has what it says, and else what the defaults say', async () => {
  const { exitCode, stderr, sessions } = await dryRun(`
[defaults]
${REPO}
verify = ["npm test"]
max_time = "4h"
tags = ["linux"]

[[sessions]]
name = "api"
goal = "  add rate limiting\\n"

[[sessions]]
goal = "write the docs"
repo = "https://host/team/docs.git"
ref = "release/2"
template = "build"
verify = []
max_time = "90m"
max_tokens = "5M"
max_cost = 12.5
max_usage = "90%"
max_wait = "12h"
rounds = 20
model = "gpt-5"
effort = "high"
sandbox = "read-only"
network = false
review = true
priority = -5
tags = ["gpu", "linux", "gpu"]
after = "api"
team = "shop"
`)
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
  const times = { notBefore: null, deadline: null }
  expect(sessions).toEqual([
    {
      name: 'api',
      repo: 'git@host:team/app.git',
      ref: 'main',
      job: { goal: 'add rate limiting', template: null, gates: ['npm test'], limits: { timeMs: 14_400_000 } },
      priority: 0,
      tags: ['linux'],
      ...times,
      after: null,
      team: '',
    },
    {
      name: null,
      repo: 'https://host/team/docs.git',
      ref: 'release/2',
      job: {
        goal: 'write the docs',
        template: 'build',
        gates: [],
        limits: { rounds: 20, timeMs: 5_400_000, tokens: 5_000_000, cost: 12.5 },
        maxUsage: 90,
        maxWaitMs: 43_200_000,
        model: 'gpt-5',
        effort: 'high',
        sandbox: 'read-only',
        network: false,
        review: true,
      },
      priority: -5,
      tags: ['gpu', 'linux'],
      ...times,
      after: 0,
      team: 'shop',
    },
  ])
})

test('a session may wait for a later one of the file, or for one that is in the fleet already', async () => {
  const { sessions } = await dryRun(`
[defaults]
${REPO}
goal = "bring it to the new linter"
[[sessions]]
after = "last"
[[sessions]]
after = "20261121_14"
[[sessions]]
name = "last"
`)
  expect(sessions.map(({ after }: { after: unknown }) => after)).toEqual([2, '20261121_14', null])
})

test('a goal may stand in a file beside that of the sessions', async () => {
  await mkdir(join(place.directory, 'goals'), { recursive: true })
  await writeFile(join(place.directory, 'goals/api.md'), '# Rate limits\n\nNone may be left out.\n')
  const { sessions } = await dryRun(`[defaults]\n${REPO}\n[[sessions]]\ngoal_file = "goals/api.md"\n`)
  expect(sessions[0].job.goal).toBe('# Rate limits\n\nNone may be left out.')
})

test('a time stands in quotes or without', async () => {
  const { sessions } = await dryRun(
    `[defaults]\n${REPO}\ngoal = "x"\n[[sessions]]\nnot_before = 22:00\n[[sessions]]\nnot_before = "22:00"\n`,
  )
  const [first, second] = sessions
  expect(first.notBefore).toBe(second.notBefore)
  const moment = new Date(first.notBefore)
  expect([moment.getHours(), moment.getMinutes(), moment.getTime() > Date.now()]).toEqual([22, 0, true])
})

promise('N3')
test('all mistakes of a file are told at once, each with its line and the mend', async () => {
  const lines = await mistakesIn(`session = 1
[defaults]
repo = "http://host/x.git"
max_tme = "4h"
max_time = "4"
name = "x"
[[sessions]]
name = "a"
after = "b"
goal = ""
[[sessions]]
name = "b"
after = "a"
goal_file = "nope.md"
tags = ["GPU", "x"]
[[sessions]]
name = "a"
after = "c"
ref = "--upload-pack=x"
deadline = "25:00"
template = "buld"
priority = 5000
verify = "npm test"
repo = "https://u:pw@host/x.git"
`)
  expect(lines).toEqual([
    'night.toml:1:1: session: is an unknown key; begin each session with a line [[sessions]].',
    'night.toml:3:8: defaults.repo: is not encrypted: use https or ssh.',
    'night.toml:4:1: defaults.max_tme: is an unknown key; did you mean "max_time"?',
    expect.stringMatching(/^night.toml:5:12: defaults.max_time: is "4"; use a time with its unit /),
    'night.toml:6:1: defaults.name: is an unknown key; it belongs to one session; write it below its line [[sessions]].',
    'night.toml:9:9: sessions[0].after: waits for itself (a → b → a); leave one of them out.',
    'night.toml:10:8: sessions[0].goal: is ""; use what is to be done, in at most 1 MiB.',
    'night.toml:14:13: sessions[1].goal_file: there is no file "nope.md"; name one beside this file.',
    'night.toml:15:9: sessions[1].tags[0]: is "GPU"; use a word of small letters and digits, such as "gpu".',
    'night.toml:16:1: sessions[2].goal: is missing; write goal = "what is to be done", or goal_file = "a path".',
    'night.toml:17:8: sessions[2].name: another session has the name "a" already; use another one.',
    'night.toml:18:9: sessions[2].after: no session of this file has the name "c"; the nearest is "a".',
    'night.toml:19:7: sessions[2].ref: is not the name of a branch, tag or commit.',
    expect.stringMatching(/^night.toml:20:12: sessions\[2\].deadline: is "25:00"; use a time of day, such as "22:00"/),
    'night.toml:21:12: sessions[2].template: cannot be used: There is no template "buld"; did you mean "build"?',
    'night.toml:22:12: sessions[2].priority: is 5000; use a whole number from -1000 to 1000.',
    expect.stringMatching(/^night.toml:23:10: sessions\[2\].verify: is "npm test"; use a list of at most 50/),
    'night.toml:24:8: sessions[2].repo: holds a password: each worker has its own credentials.',
  ])
})

test.each<[string, string, string]>([
  ['nothing', '', 'night.toml:1:1: sessions: is missing; begin each session with a line [[sessions]].'],
  ['no TOML', 'goal = x', 'night.toml:1:8: not valid TOML: unexpected character; put a text in quotes.'],
  [
    'a session that waits for itself',
    `[[sessions]]\nname = "a"\nafter = "a"\ngoal = "x"\n${REPO}`,
    'night.toml:3:9: sessions[0].after: waits for itself (a → a); leave one of them out.',
  ],
  [
    'a deadline before the beginning',
    `[[sessions]]\ngoal = "x"\n${REPO}\nnot_before = ${inDays(2)}\ndeadline = "${inDays(1)}"`,
    'night.toml:5:12: sessions[0].deadline: comes before its start',
  ],
  [
    'a deadline that is over',
    `[[sessions]]\ngoal = "x"\n${REPO}\ndeadline = ${inDays(-1)}`,
    'night.toml:4:12: sessions[0].deadline: is in the past (',
  ],
  [
    'a goal and a file of one',
    `[[sessions]]\ngoal = "x"\ngoal_file = "night.toml"\n${REPO}`,
    'night.toml:3:1: sessions[0].goal_file: there is a goal, too; leave one of them out.',
  ],
])('of %s it is said what is wrong', async (_, text, said) => {
  const [line = '', ...more] = await mistakesIn(text)
  expect(more).toEqual([])
  expect(line.slice(0, said.length)).toBe(said)
})

test('at most twenty mistakes are told, and how many there are beside them', async () => {
  const lines = await mistakesIn(`[defaults]\n${REPO}\n${'[[sessions]]\nname = "ü"\ngoal = "x"\n'.repeat(30)}`)
  expect(lines).toHaveLength(21)
  expect(lines.at(-1)).toBe('And 10 more; fix these first.')
})

test('a secret of the environment is in no goal, gate and address that is sent, and is not shown', async () => {
  const secret = 'abcdefgh-12345678'
  const lines = await mistakesIn(
    `[[sessions]]\ngoal = "log in with ${secret}"\nverify = ["curl -H ${secret}"]\nrepo = "https://host/${secret}/x.git"\n`,
    { SHOP_TOKEN: secret },
  )
  expect(lines).toEqual([
    'night.toml:2:8: sessions[0].goal: holds a secret (SHOP_TOKEN), and secrets are never sent; say where to find it instead.',
    'night.toml:3:10: sessions[0].verify: holds a secret (SHOP_TOKEN), and secrets are never sent; write "$SHOP_TOKEN" instead, and set it on the workers.',
    'night.toml:4:8: sessions[0].repo: holds a secret (SHOP_TOKEN): each worker has its own credentials.',
  ])
})

test('a file of more sessions than ten thousand is refused', async () => {
  const lines = await mistakesIn(`[defaults]\n${REPO}\ngoal = "x"\n${'[[sessions]]\n'.repeat(10_001)}`)
  expect(lines).toEqual(['night.toml:10004:1: sessions[10000]: is beyond the 10000 that there may be; leave some out.'])
})

test('a time of day is the next such one on the local clock, and what is no time is none', () => {
  const now = new Date(2026, 10, 21, 22, 30).getTime()
  const local = (day: number, hour: number, minute: number) => new Date(2026, 10, day, hour, minute)
  expect(parseTime('22:31', now)).toEqual(local(21, 22, 31))
  expect(parseTime('22:30', now)).toEqual(local(22, 22, 30))
  expect(parseTime('7:00', now)).toEqual(local(22, 7, 0))
  expect(parseTime('2026-11-23T07:00', now)).toEqual(local(23, 7, 0))
  expect(parseTime('2026-11-23 07:00:00+02:00', now)).toEqual(new Date('2026-11-23T05:00:00Z'))
  expect(parseTime('2026-11-23T07:00Z', now)).toEqual(new Date('2026-11-23T07:00:00Z'))
  for (const wrong of ['', '24:00', '7', 'tomorrow', '2026-02-30T07:00', '2026-11-23', '2029-01-01T00:00Z', '22:00 x'])
    expect([wrong, parseTime(wrong, now)]).toEqual([wrong, null])
})
