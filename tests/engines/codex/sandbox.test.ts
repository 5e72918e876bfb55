import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { Item } from '../../../src/core/events/items.ts'
import type { SandboxChoice } from '../../../src/core/shapes/sandbox.ts'
import { functionCall, reply, roundsScript, type ScriptStep, shell } from '../../../src/demo/model/reply.ts'
import { CodexEngine } from '../../../src/engines/codex/engine.ts'
import { sandboxTerms, threadTerms } from '../../../src/engines/codex/sandbox.ts'
import { makePlace, type TestPlace } from '../../support/place.ts'
import { promise } from '../../support/promise.ts'
import { says } from '../../support/rounds.ts'
import { type ScriptedModel, startScriptedModel } from '../../support/scripted-model.ts'
import { setupIn } from '../contract.ts'

/** A sub-agent's turn in the same process, after what the agent itself has done. */
const subAgent: ScriptStep[] = [
  reply(functionCall('spawn_agent', { message: 'Help.' }, 'multi_agent_v1')),
  ({ lastOutputs }) =>
    reply(functionCall('wait_agent', { targets: [JSON.parse(lastOutputs[0] ?? '').agent_id] }, 'multi_agent_v1')),
]

describe('what an agent plants for git does not run outside of the sandbox when a sub-agent starts', () => {
  const filter = (config: string, script: string) => `printf '[filter "x"]\\n\\tclean = ${script}\\n' >> ${config}`

  test.each([
    ['in the config of the repository', true, (script: string) => filter('.git/config', script)],
    [
      'in a config that .git/commondir points to',
      true,
      (script: string) => `cp -r .git other && ${filter('other/config', script)} && echo ../other > .git/commondir`,
    ],
    [
      'in a repository that it makes where there was none',
      false,
      (script: string) => `git init -q && touch README.md && git add . && ${filter('.git/config', script)}`,
    ],
  ])('%s', async (_where, isRepository, plant) => {
    await using outside = await makeOutside()
    const script = (place: TestPlace) => join(place.directory, 'clean.sh')
    await using played = await play({ git: isRepository }, place => [
      reply(
        shell(
          [
            `printf '#!/bin/sh\\necho ran >> ${outside.file}\\ncat\\n' > clean.sh && chmod +x clean.sh`,
            `echo '* filter=x' > .gitattributes`,
            plant(script(place)),
            'touch README.md',
            'git status --porcelain > status; echo planted',
          ].join(' && '),
        ),
      ),
      ...subAgent,
      says('Done.'),
    ])
    // In the sandbox it ran, and could do no harm.
    expect(played.outputs[0]).toContain('clean.sh')
    expect(played.outputs[0]).toContain('planted')
    expect(played.model.requests.filter(request => request.isSubAgent)).toHaveLength(1)
    expect(existsSync(outside.file)).toBe(false)
  })
})

promise('B4')
test('a git that lies where an agent can write is not run by codex, and commands find the programs of the project', async () => {
  await using outside = await makeOutside()
  await using played = await play(
    {
      env: ({ directory, env }) => ({
        PATH: [join(directory, 'node_modules', '.bin'), 'node_modules/.bin', env.PATH].join(delimiter),
      }),
      prepare: async ({ directory }) => {
        const bin = join(directory, 'node_modules', '.bin')
        await mkdir(bin, { recursive: true })
        await writeFile(join(bin, 'git'), `#!/bin/sh\necho ran >> ${outside.file}\n`, { mode: 0o755 })
        await writeFile(join(bin, 'tool'), '#!/bin/sh\necho the tool\n', { mode: 0o755 })
      },
    },
    () => [reply(shell('tool', { login: false })), reply(shell('tool')), ...subAgent, says('Done.')],
  )
  expect(played.outputs.slice(0, 2)).toEqual(['the tool\n', 'the tool\n'])
  expect(existsSync(outside.file)).toBe(false)
})

describe('the environment of commands is what the person has settled', () => {
  const print = `echo "$GIT_DIR|$SECRET_A|$OTHER|$MINE"`

  test.each([
    ['nothing', '', '|secret|other|'],
    ['a list', 'exclude = ["SECRET*"]\nset = { MINE = "mine" }', '||other|mine'],
    ['a table', 'set = { MINE = "mine" }\n[shell_environment_policy.filters]\n"SECRET*" = "exclude"', '||other|mine'],
    ['only some', 'include_only = ["PATH", "HOME", "OTHER", "MINE"]\nset = { MINE = "mine" }', '||other|mine'],
    ['a repository', 'set = { GIT_DIR = "/mine", MINE = "mine" }', '/mine|secret|other|mine'],
  ])('%s', async (_what, policy, expected) => {
    const config = `[shell_environment_policy]\n${policy}`
    await using played = await play({ config, env: () => ({ SECRET_A: 'secret', OTHER: 'other' }) }, () => [
      reply(shell(print, { login: false })),
      reply(shell(print)),
      says('Done.'),
    ])
    expect(played.outputs).toEqual([`${expected}\n`, `${expected}\n`])
  })
})

test('where there is no repository an agent makes one and commits, patches by heredoc, and config.toml stays as it is', async () => {
  const patch = `apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: b.txt\n+b\n*** End Patch\nEOF`
  const identity = 'git config user.name A && git config user.email a@example.org'
  await using played = await play({ git: false }, () => [
    reply(shell(patch)),
    reply(shell(`git init -q && ${identity} && git add . && git commit -qm First && git log --format=%s`)),
    says('Done.'),
  ])
  expect(played.outputs).toEqual(['First\n'])
  expect(existsSync(join(played.place.directory, 'b.txt'))).toBe(true)
  expect(await readFile(join(played.place.codexHome, 'config.toml'), 'utf8')).toBe(played.config)
})

describe('an agent that is bound to folders', () => {
  const choice = { network: true, writable: ['/work/.git'] }
  const bound = (mode: SandboxChoice['mode']) =>
    threadTerms({ writable: ['src/web', 'docs'] }, '/work', { ...choice, mode })

  test('has no repository to write in, and the network that the person allows', () => {
    const { thread, turn } = bound('workspace-write')
    const filesystem = { '/work': 'read', '/work/src/web': 'write', '/work/docs': 'write', ':root': 'read' }
    expect(thread.config).toMatchObject({ permissions: { [thread.permissions ?? '']: { filesystem } } })
    expect(thread.config).toMatchObject({ permissions: { [thread.permissions ?? '']: { network: { enabled: true } } } })
    expect(JSON.stringify([thread, turn])).not.toContain('.git')
  })

  test.each(['danger-full-access', 'read-only'] as const)('has what every agent has in %s', mode => {
    expect(bound(mode)).toEqual(sandboxTerms('/work', { ...choice, mode }))
  })
})

interface Played extends AsyncDisposable {
  /** What its commands printed. */
  outputs: string[]
  place: TestPlace
  model: ScriptedModel
  /** The person's config.toml, as it was before. */
  config: string
}

interface Scene {
  git?: boolean
  /** More of config.toml. */
  config?: string
  /** More of the environment that codemachine is started in. */
  env?: (place: TestPlace) => Record<string, string>
  prepare?: (place: TestPlace) => Promise<void>
}

/** Plays one round in workspace-write on the real codex. */
async function play(scene: Scene, steps: (place: TestPlace) => readonly ScriptStep[]): Promise<Played> {
  await using opened = new AsyncDisposableStack()
  let played: readonly ScriptStep[] = []
  const model = opened.use(
    await startScriptedModel({ script: request => roundsScript([played], { subAgent: says('Helped.') })(request) }),
  )
  const config = `${model.codexConfig('scripted')}\n${scene.config ?? ''}\n`
  const place = opened.use(await makePlace(config, { git: scene.git ?? true }))
  await scene.prepare?.(place)
  played = steps(place)
  const env = { ...place.env, ...scene.env?.(place) }
  const sandbox = { mode: 'workspace-write', network: false, writable: [join(place.directory, '.git')] } as const
  const engine = new CodexEngine(await setupIn({ ...place, env }, { sandbox }))
  opened.defer(() => engine.close())
  const items: Item[] = []
  const outcome = await engine.prepare({ agent: 'a', developerInstructions: 'Do it.', model: null, effort: null }).run({
    round: 1,
    input: 'Go on.',
    onEvent: event => void (event.type === 'item-completed' && items.push(event.item)),
    onLive() {},
    onRecord() {},
  })
  expect(outcome).toEqual({ class: 'worked', message: null })
  const held = opened.move()
  return {
    outputs: items.flatMap(item => (item.kind === 'command' ? [item.output] : [])),
    place,
    model,
    config,
    [Symbol.asyncDispose]: () => held.disposeAsync(),
  }
}

/** A file outside of what a sandbox leaves writable, which /tmp is not. */
async function makeOutside(): Promise<AsyncDisposable & { file: string }> {
  const folder = await mkdtemp('/var/tmp/codemachine-outside-')
  return { file: join(folder, 'ran'), [Symbol.asyncDispose]: () => rm(folder, { recursive: true }) }
}
