import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { reply, shell } from '../../../src/demo/model/reply.ts'
import { eventsOf } from '../../support/scene.ts'
import { describe, test } from '../../support/side-by-side.ts'
import {
  askHuman,
  commands,
  openTeamScene,
  plans,
  runShell,
  type TeamScene,
  type TeamScript,
  works,
} from '../../support/team-scene.ts'

const KEY = 'SERVICE_API_KEY'
const VALUE = 'sk-live+4711/"quoted" ä€-end'
const GOAL = 'Ask the service.'

const team = (scene: TeamScene, ...more: string[]) =>
  scene.run('team', GOAL, '--yes', '--json', '--no-keep-awake', ...more)

/** Each way in which a command hands a value on, by name. `$V` is the value. */
const WAYS: Readonly<Record<string, string>> = {
  plain: 'echo "it is $V."',
  'on stderr': 'echo "it is $V." >&2',
  base64: 'printf %s "$V" | base64',
  'base64 after one': 'printf "a%s" "$V" | base64 -w 0',
  'base64 after two': 'printf "ab%s" "$V" | base64 -w 20',
  'base64 for URLs': 'printf %s "$V" | base64 -w 0 | tr "+/" "-_"',
  hex: 'printf %s "$V" | od -An -v -tx1 | tr -d " \\n"',
  'hex in capitals': 'printf %s "$V" | od -An -v -tx1 | tr -d " \\n" | tr a-f A-F',
  'in two writes': 'printf %s "$V" | { head -c 13; sleep 0.3; cat; }',
  'letter by letter': 'printf %s "$V" | while IFS= read -r -n 1 c; do printf %s "$c"; done',
  'in an error text': 'ls "/no/$V/such"; cd "$V"; exit 1',
  'in a URL': `node -e 'console.log("https://x.example/?key=" + encodeURIComponent(process.env.V))'`,
  'in JSON': `node -e 'console.log(JSON.stringify({ key: process.env.V }))'`,
  'over two lines': 'printf %s "$V" | fold -b -w 9',
  'after much else': 'seq 20000; echo "$V"; seq 2000',
  'at the cut': 'head -c 3000 /dev/zero | tr "\\0" x; for n in $(seq 900); do echo "$V"; done',
}

const asked = (...lines: readonly string[]): TeamScript => ({
  planner: [[plans('Ask the service.')]],
  worker: {
    1: [
      [askHuman(KEY), works({ done: false })],
      [...lines.map(line => runShell(line, KEY)), works()],
    ],
  },
})

describe('a secret that a command hands on stands nowhere', () => {
  test('whatever the way, in any byte below the records, the project, the workspace and the home of codex, and in no request', async () => {
    const lines = Object.values(WAYS).map(way =>
      way.replace(/\$\{?V\b/g, each => each.replace('V', KEY)).replace(/env\.V\b/g, `env.${KEY}`),
    )
    await using scene = await openTeamScene(asked(...lines))
    const first = await team(scene)
    expect(first.exitCode, first.stderr).toBe(4)
    expect(`${first.stdout}${first.stderr}`).toContain(KEY)
    const set = await scene.setSecret(KEY, VALUE)
    expect(set.exitCode, set.stderr).toBe(0)
    expect(`${set.stdout}${set.stderr}`).not.toContain(VALUE)
    const ended = await scene.run('resume', '-C', scene.project(), '--json', '--no-keep-awake')
    expect(ended.exitCode, ended.stderr).toBe(0)
    const ran = eventsOf(ended.events, 'shell-ran')
    expect(ran).toHaveLength(lines.length)
    for (const [at, name] of Object.keys(WAYS).entries()) {
      expect(`${ran[at]?.stdout}${ran[at]?.stderr}`, name).toContain(`[secret ${KEY}]`)
      expect(ran[at]?.printed, name).toEqual([KEY])
    }
    expect(scene.findLeaks(VALUE)).toEqual([])
    expect(`${ended.stdout}${ended.stderr}`).not.toContain(VALUE)
    expect(scene.log().some(line => line.includes('[SECRET CONFIRMED]'))).toBe(true)
  })

  test('the search of this test finds each form', async () => {
    await using scene = await openTeamScene({})
    const { writeFile } = await import('node:fs/promises')
    const file = join(scene.place.directory, 'leak')
    const bytes = Buffer.from(VALUE)
    for (const form of [
      VALUE,
      JSON.stringify(VALUE),
      encodeURIComponent(VALUE),
      bytes.toString('base64'),
      Buffer.from(`a${VALUE}b`).toString('base64url'),
      Buffer.from(`ab${VALUE}cd`).toString('base64').replace(/.{20}/g, '$&\n'),
      bytes.toString('hex').toUpperCase(),
    ]) {
      await writeFile(file, `before ${form} after`)
      expect(scene.findLeaks(VALUE), form).not.toEqual([])
    }
  })

  test('a file that a command writes it into is named, and read by no agent after that', async () => {
    await using scene = await openTeamScene({
      planner: [[plans('Ask the service.', { description: 'Look.', needs: [1] })]],
      worker: {
        1: [
          [askHuman(KEY), works({ done: false })],
          [runShell(`printf 'key=%s\\n' "$${KEY}" | tee config.ini > '[id].ini'`, KEY), works()],
          [works()],
        ],
        2: [
          [
            reply(shell('cat *.ini; cp config.ini copy.ini; git add -A; git stash list', { login: false })),
            runShell('cat *.ini; base64 config.ini'),
            works(),
          ],
        ],
      },
    })
    await team(scene)
    await scene.setSecret(KEY, VALUE)
    const ended = await scene.run('resume', '-C', scene.project(), '--json', '--no-keep-awake')
    expect(eventsOf(ended.events, 'shell-ran').find(({ leaked }) => leaked !== undefined)).toMatchObject({
      leaked: expect.toSatisfy((files: string[]) => files.toSorted().join() === '[id].ini,config.ini'),
    })
    expect(ended.stdout).toContain('config.ini')
    expect(existsSync(join(scene.project(), 'config.ini'))).toBe(true)
    const written = ['config.ini', '[id].ini'].map(name => join(scene.project(), name))
    const leaks = scene.findLeaks(VALUE).filter(place => !written.some(path => place.startsWith(path)))
    expect(leaks).toEqual([])
  })
})

describe('what an agent cannot read', () => {
  test("`.env` and the records, in codex's own shell, in run_shell and in those of a reviewer", async () => {
    const tries = (state: string) =>
      `cat .env .env.local; cat ${state}/*/secrets/* ${state}/*/sessions/*/journal.ndjson; find ${state} -name '${KEY}*' -exec cat {} +; cat .env.example; true`
    const state = '$HOME/.codemachine/state'
    await using scene = await openTeamScene({
      planner: [[plans('Ask the service.', { description: 'Look.', needs: [1] })]],
      worker: {
        1: [
          [askHuman(KEY), works({ done: false })],
          [runShell(`test -n "$${KEY}"`, KEY), works()],
        ],
        2: [
          [
            reply(shell('echo EXAMPLE= > .env.example; echo x > .env.local', { login: false })),
            reply(shell(tries(state), { login: false })),
            runShell(tries(state)),
            works(),
          ],
        ],
      },
    })
    await team(scene)
    await scene.setSecret(KEY, VALUE)
    const { writeFile } = await import('node:fs/promises')
    await writeFile(join(scene.project(), '.gitignore'), '.env\n')
    const exported = await scene.run('secret', 'export', KEY, '--to', '.env', '-C', scene.project())
    expect(exported.exitCode, exported.stderr).toBe(0)
    expect(readFileSync(join(scene.project(), '.env'), 'utf8')).toContain(KEY)
    const ended = await scene.run('resume', '-C', scene.project(), '--json', '--no-keep-awake')
    expect(ended.exitCode, ended.stderr).toBe(0)
    expect(existsSync(join(scene.project(), '.env.local'))).toBe(false)
    const said = JSON.stringify(scene.asked('worker').map(({ lastOutputs }) => lastOutputs))
    expect(said).toContain('EXAMPLE=')
    expect(said.match(/Permission denied/g)?.length).toBeGreaterThan(3)
    const leaks = scene.findLeaks(VALUE).filter(place => !place.startsWith(join(scene.project(), '.env:')))
    expect(leaks).toEqual([])
  })
})

describe('stepwise', () => {
  test('a worker asks in its answer, uses the secret by name, and never sees it', async () => {
    await using scene = await openTeamScene({
      planner: [[plans('Ask the service.')]],
      worker: {
        1: [
          [
            commands('', {
              done: false,
              ask_human: { question: 'What is it?', key_name: KEY, storage: 'env', reason: null },
            }),
          ],
          [commands(`echo "it is $${KEY}"; printf %s "$${KEY}" | base64`, { secrets: [KEY] }), commands(null)],
        ],
      },
    })
    const first = await team(scene, '--stepwise')
    expect(first.exitCode, first.stderr).toBe(4)
    await scene.setSecret(KEY, VALUE)
    const ended = await scene.run('resume', '-C', scene.project(), '--json', '--no-keep-awake')
    expect(ended.exitCode, ended.stderr).toBe(0)
    const text = scene.begun('stepwise').at(-1)?.userTexts.join('\n')
    expect(text).toContain(`CONFIRM_SECRET ${KEY}`)
    expect(JSON.stringify(scene.asked('stepwise').at(-1)?.body)).toContain(`[secret ${KEY}]`)
    expect(scene.findLeaks(VALUE)).toEqual([])
  })
})
