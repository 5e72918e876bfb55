import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { keepsGitObjects } from '../../../../src/core/shapes/secrets.ts'
import { reply, shell } from '../../../../src/demo/model/reply.ts'
import { promise } from '../../../support/promise.ts'
import { eventsOf } from '../../../support/scene.ts'
import { describe, test } from '../../../support/side-by-side.ts'
import { askHuman, openRealTeamScene, plans, runShell, type TeamScript, works } from '../../../support/team-scene.ts'
import { KEY, team, VALUE } from './leak-search.ts'

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

const COMMITS = 'git init -q 2>/dev/null; git config user.name a; git config user.email a@b.c;'
const COMMITTED = 'git add f; git commit -qm x; git rm -q f; git commit -qm y'

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
  promise(
    'T50',
    'A secret that a command hands on in any form stands in no byte that is left, and in no request to the model',
  )
  test('whatever the way, in any byte below the records, the project, the workspace and the home of codex, and in no request', async () => {
    const lines = Object.values(WAYS).map(way =>
      way.replace(/\$\{?V\b/g, each => each.replace('V', KEY)).replace(/env\.V\b/g, `env.${KEY}`),
    )
    await using scene = await openRealTeamScene(asked(...lines))
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

  promise('T50')
  promise('T54')
  test('a file that a command writes it into is named, and read by no agent after that', async () => {
    await using scene = await openRealTeamScene({
      planner: [[plans('Ask the service.', { description: 'Look.', needs: [1] })]],
      worker: {
        1: [
          [askHuman(KEY), works({ done: false })],
          [runShell(`printf 'key=%s\\n' "$${KEY}" | tee config.ini > '[id].ini'`, KEY), works()],
          [runShell(`${COMMITS} printf 'key=%s\\n' "$${KEY}" > f; ${COMMITTED}`, KEY), works()],
          [works()],
        ],
        2: [
          [
            reply(
              shell('cat *.ini; cp config.ini copy.ini; git log -p; git gc; git add -A; git stash list', {
                login: false,
              }),
            ),
            runShell('cat *.ini; base64 config.ini; git log -p --all; git bundle create all.bundle --all'),
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
    expect(ended.stdout).toContain(
      'A command has put the secret SERVICE_API_KEY into the git repository (.git/objects/',
    )
    // The object stays in the repository: nobody but a person takes it out of a history.
    const objects = eventsOf(ended.events, 'shell-ran').flatMap(({ leaked = [] }) => leaked.filter(keepsGitObjects))
    expect(objects).toHaveLength(1)
    const written = ['config.ini', '[id].ini', ...objects].map(name => join(scene.project(), name))
    const leaks = scene.findLeaks(VALUE).filter(place => !written.some(path => place.startsWith(path)))
    expect(leaks).toEqual([])
  })
})
