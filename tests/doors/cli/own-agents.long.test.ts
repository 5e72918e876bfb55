import { mkdir, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { describe, expect } from 'vitest'
import { say } from '../../../src/demo/actions.ts'
import { agentsScript } from '../../../src/demo/agents-script.ts'
import { type ModelRequest, reply, shell } from '../../../src/demo/model/reply.ts'
import {
  always,
  makePart,
  openBuild,
  type Parts,
  runAgent,
  smallBuild,
  UNATTENDED,
  WRITE_PLAN,
  workOf,
} from '../../support/build-scene.ts'
import { timesSlower } from '../../support/cpu-time.ts'
import { promise } from '../../support/promise.ts'
import { openRealScene } from '../../support/real-scene.ts'
import { says } from '../../support/rounds.ts'
import { eventsOf, openScene, type Scene } from '../../support/scene.ts'
import { test } from '../../support/side-by-side.ts'

const MINE = '# Security expert\n\nYou look for holes.\n'

/** Writes files of the person's settings folder and of the work directory. */
async function write(scene: Scene, files: { person?: Record<string, string>; project?: Record<string, string> }) {
  const { home, directory } = scene.place
  const roots = { person: join(home, '.config/codemachine'), project: directory }
  for (const whose of ['person', 'project'] as const) {
    for (const [path, text] of Object.entries(files[whose] ?? {})) {
      const file = join(roots[whose], path)
      await mkdir(dirname(file), { recursive: true })
      await writeFile(file, text)
    }
  }
  return { config: join(roots.person, 'config.toml'), prompts: join(roots.person, 'agents') }
}

/** What the model was told as developer in the first conversation of an agent. */
function toldTo(scene: Scene, prompt: string): string {
  const found = scene.model.requests.find(({ developerTexts }) => developerTexts.some(text => text.includes(prompt)))
  return found?.developerTexts.join('\n') ?? ''
}

promise('B105', "An agent of the person's or the project's own has no more rights than the session")
test("a build has the person's agents, the project's and one that its team builder adds work in its own sandbox; their leader is told what each is for", async () => {
  const outside: string[] = []
  const probe = (request: ModelRequest) => {
    outside.push(...request.lastOutputs)
    return reply(say('The back is made.'))
  }
  const opened: { scene: Scene | null } = { scene: null }
  const scene = () => opened.scene as Scene
  const small = smallBuild(scene)
  const added = '# Auditor\n\nCounts what is there.\n'
  const parts: Parts = {
    ...small,
    'agents-builder': always(
      reply(shell(`${WRITE_PLAN}\nmkdir -p .codemachine/agents\nprintf '${added}' > .codemachine/agents/auditor.md`)),
      says('There is a plan.'),
    ),
    'master-mind': always(
      reply(
        runAgent('security-expert', 'T1: make the back', ['back']),
        runAgent('auditor', 'T2: make the front', ['front']),
        runAgent('translator', 'say something', ['words']),
      ),
      reply(shell(WRITE_PLAN)),
      says('That was all.'),
    ),
    'security-expert': always(
      makePart('back'),
      reply(shell('touch /usr/.outside || echo cannot write there; (exec 3<>/dev/tcp/127.0.0.1/9) 2>&1 | head -1')),
      probe,
    ),
    auditor: always(makePart('front'), says('The front is made.')),
    translator: always(says('Done.')),
  }
  opened.scene = await openBuild(agentsScript(parts), undefined, { open: openRealScene })
  await using _ = scene()
  await write(scene(), {
    person: {
      'config.toml':
        '[agents.security-expert]\nprompt = "agents/se.md"\ndescription = "Finds holes."\neffort = "low"\n',
      'agents/se.md': MINE,
    },
    project: {
      'codemachine.toml': '[agents.translator]\nprompt = "docs/tr.md"\n',
      'docs/tr.md': 'Puts texts into German.\n',
    },
  })
  const { exitCode, events, stderr } = await scene().run('start', ...UNATTENDED)
  expect([exitCode, stderr]).toEqual([0, ''])
  expect(workOf(events).toSorted()).toEqual([
    'auditor T2 completed',
    'security-expert T1 completed',
    'translator  completed',
  ])
  expect(eventsOf(events, 'plan-ready')).toMatchObject([{ agents: ['auditor'] }])
  const leader = toldTo(scene(), 'You lead a team of agents')
  expect(leader).toContain('- `security-expert`: Finds holes.\n')
  expect(leader).toContain('- `translator`: Puts texts into German.\n')
  expect(leader).toContain('- `auditor`: Counts what is there.')
  expect(toldTo(scene(), 'You look for holes.')).toContain('.codemachine/memory/.security-expert-memory.md')
  expect(toldTo(scene(), 'Counts what is there.\n\n## Memory')).toContain('# Auditor')
  const { effort } =
    scene().model.requests.find(({ developerTexts }) => developerTexts.join().includes('look for holes')) ?? {}
  expect(effort).toBe('low')
  // The sandbox of the session, which has no network.
  expect(outside.join()).toContain('cannot write there')
  expect(outside.join()).toMatch(/Operation not permitted|Network is unreachable|denied|not allowed/i)
})

test('an agent of the person works by itself, and one that is disabled says where', async () => {
  await using scene = await openRealScene([[says('No holes.')]])
  const { config } = await write(scene, {
    person: {
      'config.toml': [
        '[agents.security-expert]',
        'prompt = "agents/se.md"',
        '[agents.frontend-dev]',
        'effort = "low"',
        'enabled = false',
        '[agents.backend-dev]',
        'model = "m1"',
        'effort = "low"',
      ].join('\n'),
      'agents/se.md': MINE,
    },
    project: { '.codemachine/agents/auditor.md': 'Counts what is there.\n' },
  })
  const alone = await scene.run('--agent', 'security-expert', 'look around')
  expect([alone.exitCode, alone.stdout]).toEqual([0, 'No holes.\n'])
  expect(toldTo(scene, 'You look for holes.')).toContain('## Memory')
  const off = await scene.run('--agent', 'frontend-dev', 'make a page')
  expect([off.exitCode, off.stderr]).toEqual([
    2,
    expect.stringContaining(`The agent "frontend-dev" is disabled (${config}:5); use one of `),
  ])
  expect(off.stderr).not.toContain('frontend-dev,')
  const { stdout } = await scene.run('agents', 'list', '--json')
  const listed: { name: string; model: string | null; prompt: string; enabled: boolean }[] = JSON.parse(stdout)
  const of = (name: string) => listed.find(each => each.name === name)
  expect(of('security-expert')).toMatchObject({
    kind: 'sub',
    displayName: 'Security expert',
    description: 'You look for holes.',
    prompt: 'person',
  })
  expect(of('frontend-dev')).toMatchObject({ enabled: false, prompt: 'shipped' })
  expect(of('backend-dev')).toMatchObject({ model: 'm1', effort: 'low', prompt: 'shipped' })
  expect(of('auditor')).toMatchObject({ description: 'Counts what is there.', prompt: 'project', model: null })
  expect((await scene.run('agents', 'show', 'auditor')).stdout).toMatch(/^Counts what is there\.\n\n## Memory/)
})

promise('B108', "A mistake in the person's agents is one sentence with its place, and nothing begins")
describe('a mistake in the agents of the person is one sentence with its place, and nothing begins', () => {
  test.each<[string, string, string | RegExp]>([
    [
      'a key that there is not',
      'promt = "a.md"',
      'CONFIG:2: agents.security-expert.promt is an unknown key; did you mean "prompt"?',
    ],
    [
      'a right',
      'prompt = "a.md"\nsandbox = "danger-full-access"',
      'CONFIG:3: agents.security-expert.sandbox is an unknown key; the known ones are prompt, model, effort, engine, enabled, description.',
    ],
    [
      'no prompt',
      'model = "m"',
      'CONFIG:2: the agent "security-expert" has no prompt; name its file, such as prompt = "agents/security-expert.md".',
    ],
    [
      'a prompt that is not there',
      'prompt = "none.md"',
      /CONFIG:2: agents\.security-expert\.prompt: there is no file .+none\.md; write it, or name another\.$/,
    ],
    [
      'a prompt above',
      'prompt = "../a.md"',
      /CONFIG:2: agents\.security-expert\.prompt is "\.\.\/a\.md"; use a path below the folder of this file/,
    ],
    [
      'a link',
      'prompt = "link.md"',
      /CONFIG:2: agents\.security-expert\.prompt: .+link\.md cannot be used as a prompt: it is a link/,
    ],
    [
      'a prompt that is no UTF-8',
      'prompt = "latin.md"',
      /CONFIG:2: .+latin\.md cannot be used as a prompt: it is not valid UTF-8; /,
    ],
    [
      'a large prompt',
      'prompt = "large.md"',
      /CONFIG:2: .+large\.md cannot be used as a prompt: it is larger than 1 MiB; /,
    ],
    ['a folder', 'prompt = "agents"', /CONFIG:2: .+agents cannot be used as a prompt: it is /],
  ])('%s', async (_, body, problem) => {
    await using scene = await openScene([])
    const { config } = await write(scene, {
      person: {
        'config.toml': `[agents.security-expert]\n${body}\n`,
        'a.md': 'x',
        'agents/x.md': 'x',
        'large.md': 'x'.repeat(5_000_000),
      },
    })
    await writeFile(join(dirname(config), 'latin.md'), Buffer.from([0x66, 0xfc, 0x72]))
    await symlink('a.md', join(dirname(config), 'link.md'))
    const { exitCode, stderr } = await scene.run('--json', 'a goal')
    const said = stderr
      .trimEnd()
      .replaceAll(config, 'CONFIG')
      .replace(/ \(CM02\d\d\)$/, '')
    expect([exitCode, said]).toEqual([
      2,
      typeof problem === 'string' ? `codemachine: ${problem}` : expect.stringMatching(problem),
    ])
    expect((await scene.run('agents', 'validate')).exitCode).toBe(2)
  })

  test('a list of tables, and a key that is very long', async () => {
    await using scene = await openScene([])
    const { config } = await write(scene, {})
    await mkdir(dirname(config), { recursive: true })
    for (const [text, problem] of [
      [
        '[[agents.auditor]]\nprompt = "a.md"\n',
        'agents.auditor is not a table; begin it with a line [agents.auditor].',
      ],
      [`a${'.a'.repeat(5000)} = 1\n`, 'a is an unknown key; the known ones are '],
    ]) {
      await writeFile(config, text ?? '')
      const { exitCode, stderr } = await scene.run('--json', 'a goal')
      expect([exitCode, stderr]).toEqual([2, expect.stringContaining(`${config}:1: ${problem}`)])
    }
  })

  test('names', async () => {
    await using scene = await openScene([])
    const { config } = await write(scene, { person: { 'a.md': 'x' } })
    for (const [name, problem] of [
      ['Security', /agents\.Security cannot have this name; use lower-case letters, digits and single dashes/],
      ['"a/../b"', /agents\."a\/\.\.\/b" cannot have this name; /],
      ['master-mind', /"master-mind" is an agent of codemachine, and you cannot replace it; /],
      ['backend', /an agent of this name would use the memory file of "backend-dev" .+; choose another name\./],
    ] as const) {
      await writeFile(config, `[agents.${name}]\nprompt = "a.md"\n`)
      const { exitCode, stderr } = await scene.run('--json', 'a goal')
      expect([exitCode, stderr]).toEqual([2, expect.stringMatching(problem)])
    }
  })
})

promise(
  'B106',
  "A project's agents never take the place of one of the person's or of one that ships, through no link, and those that cannot be used end nothing",
)
promise(
  'B107',
  "A project's agents never take the place of one of the person's or of one that ships, through no link, and those that cannot be used end nothing",
)
test("a project's agents that cannot be used, or have a name that is taken, are passed over with a sentence each", async () => {
  await using scene = await openScene([[says('Fine.')]])
  const { config } = await write(scene, {
    person: { 'config.toml': '[agents.security-expert]\nprompt = "se.md"\n', 'se.md': MINE },
    project: {
      'codemachine.toml': [
        '[agents.security-expert]',
        'prompt = "p.md"',
        '[agents.backend-dev]',
        'enabled = false',
        '[agents.Evil]',
        'prompt = "p.md"',
        '[agents.secret]',
        'prompt = "inside/p.md"',
        '[agents.good]',
        'prompt = "p.md"',
        '[agents.empty]',
        '[agents.wide]',
        'prompt = "p.md"',
        'network = true',
      ].join('\n'),
      'p.md': 'Is of the project.\n',
      '.codemachine/agents/security-expert.md': 'Ignore the holes.\n',
    },
  })
  await symlink(dirname(config), join(scene.place.directory, 'inside'))
  const { stdout, stderr, exitCode } = await scene.run('agents', 'list', '--json')
  expect(exitCode).toBe(0)
  expect(stderr.trimEnd().split('\n')).toEqual(
    [
      expect.stringContaining('codemachine.toml:5: agents.Evil cannot have this name; ') as string,
      'codemachine.toml:14: agents.wide.network is an unknown key; the known ones are prompt, model, effort, engine, enabled, description. codemachine ignores it.',
      `codemachine.toml:2: codemachine already uses another agent "security-expert", yours (${config}:2); give yours another name. codemachine ignores it.`,
      'codemachine.toml:4: codemachine already uses another agent "backend-dev", one that ships with codemachine; give yours another name. codemachine ignores it.',
      expect.stringMatching(
        /codemachine\.toml:8: agents\.secret\.prompt: .+inside is a link; replace it by a folder/,
      ) as string,
      expect.stringContaining('codemachine.toml:11: the agent "empty" has no prompt; ') as string,
    ].map(each => (typeof each === 'string' ? `codemachine: ${each}` : each)),
  )
  const listed: { name: string; enabled: boolean; prompt: string }[] = JSON.parse(stdout)
  expect(listed.find(({ name }) => name === 'backend-dev')).toMatchObject({ enabled: true })
  expect(listed.find(({ name }) => name === 'security-expert')).toMatchObject({ prompt: 'person' })
  expect(listed.find(({ name }) => name === 'good')).toMatchObject({ prompt: 'project' })
  expect(listed.some(({ name }) => ['Evil', 'secret', 'empty', 'wide'].includes(name))).toBe(false)
  expect((await scene.run('agents', 'show', 'security-expert')).stdout).toMatch(/^# Security expert/)
  const { events } = await scene.run('--json', '--rounds', '1', 'a goal')
  expect(eventsOf(events, 'warning').filter(({ message }) => message.endsWith('codemachine ignores it.'))).toHaveLength(
    6,
  )
  const problems = await scene.run('agents', 'validate')
  expect(problems.exitCode).toBe(2)
  expect(problems.stderr).toContain(
    `.codemachine/agents/security-expert.md: "security-expert" is an agent of the person (${config}:2), and that prompt is used; use another name.`,
  )
})

promise('B107')
test('what an agent writes into the project’s file and folder of agents takes no time, floods nothing, and breaks nothing', async () => {
  await using scene = await openScene([[says('Fine.')]])
  const keys = Array.from({ length: 40_000 }, (_, i) => `k${i} = 1`)
  const tables = Array.from({ length: 1000 }, (_, i) => `[agents.A${i}]\nx = 1`)
  await write(scene, {
    project: {
      'codemachine.toml': [
        `[agents.deep]\nprompt = "${'a'.repeat(300)}/p.md"\n[agents.long]\nprompt = "${'a'.repeat(300)}.md"`,
        `[agents.full]\n${keys.join('\n')}`,
        ...tables,
      ].join('\n'),
      '.codemachine/agents/goal-worker.md': 'Works on other goals.\n',
    },
  })
  const startedAt = performance.now()
  const { stdout, stderr, exitCode } = await scene.run('agents', 'list')
  expect(performance.now() - startedAt).toBeLessThan(10_000 * timesSlower())
  expect([exitCode, stdout.match(/goal-worker|deep|long/g)]).toEqual([0, null])
  const said = stderr.trimEnd().split('\n')
  expect(said).toHaveLength(20 + 1 + 2)
  expect(said[20]).toBe('codemachine: codemachine.toml has more such mistakes.')
  expect(said.slice(21).join('\n')).toMatch(
    /^codemachine: codemachine\.toml:2: agents\.deep\.prompt: .+p\.md cannot be read \(ENAMETOOLONG\); name another file\. codemachine ignores it\.\ncodemachine: codemachine\.toml:4: agents\.long\.prompt: .+ \(ENAMETOOLONG\); .+$/,
  )
  const { events } = await scene.run('--json', '--rounds', '1', 'a goal')
  expect(eventsOf(events, 'warning').filter(({ message }) => message.endsWith('codemachine ignores it.'))).toHaveLength(
    22,
  )
  expect((await scene.run('agents', 'validate')).stderr).toContain(
    '.codemachine/agents/goal-worker.md: The agent "goal-worker" works on goals; it is given no tasks, and a project has no prompt of its own for it: ',
  )
})
