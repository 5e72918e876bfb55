import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { reply, shell } from '../../../../src/demo/model/reply.ts'
import { promise } from '../../../support/promise.ts'
import { describe, test } from '../../../support/side-by-side.ts'
import { askHuman, commands, openRealTeamScene, plans, runShell, works } from '../../../support/team-scene.ts'
import { KEY, team, VALUE } from './leak-search.ts'

describe('a secret that a command hands on stands nowhere', () => {
  test('the search of this test finds each form', async () => {
    await using scene = await openRealTeamScene({})
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
})

describe('what an agent cannot read', () => {
  promise('T51', 'An agent can read neither `.env` nor the records')
  test("`.env` and the records, in codex's own shell, in run_shell and in those of a reviewer", async () => {
    const tries = (state: string) =>
      `cat .env .env.local; cat ${state}/*/secrets/* ${state}/*/sessions/*/journal.ndjson; find ${state} -name '${KEY}*' -exec cat {} +; cat .env.example; true`
    const state = '$HOME/.codemachine/state'
    await using scene = await openRealTeamScene({
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
  promise('E4', 'A team plans, works, reviews, and uses a secret that it never sees')
  test('a worker asks in its answer, uses the secret by name, and never sees it', async () => {
    await using scene = await openRealTeamScene({
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
