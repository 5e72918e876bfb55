import { glob } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { runnerOf } from '../doors/cli/verify/action-run.ts'
import { agentKey } from '../doors/cli/verify/agent-key.ts'
import { codemachine } from '../support/codemachine.ts'
import { codemachineHere } from '../support/in-process.ts'
import { git, makePlace } from '../support/place.ts'
import { promise } from '../support/promise.ts'

/** It takes a minute on an idle machine. */
const DEMO_MS = 480_000

promise('D99')
test(
  'the action proves the contract of the demo in a fresh clone, and fails where its certificate was tampered with',
  async () => {
    await using root = await makePlace('')
    const demo = await codemachine(root, ['demo', '--fast', '--json'], {
      env: { TMPDIR: root.root },
      boundMs: DEMO_MS,
    })
    expect(demo.exitCode).toBe(0)
    const [path = ''] = await Array.fromAsync(glob('codemachine-demo-*/linkcheck', { cwd: root.root }))
    const records = join(root.home, '.codemachine', 'demo', path.split('/')[0] ?? '')
    const place = { ...root, directory: join(root.root, path), env: { ...root.env, CODEMACHINE_HOME: records } }
    using key = await agentKey(place)
    const made = await codemachineHere(place, ['certificate', '--sign', key.path, '--note'], key)
    expect([made.exitCode, made.stderr]).toEqual([0, ''])

    await using runner = await runnerOf(place, key.signers)
    const head = git(place, 'rev-parse', 'HEAD')
    const passed = await runner.step(head, { REQUIRE: 'proved' })
    expect(passed.log).toContain('failures: none: ')
    expect(passed.exitCode).toBe(0)
    expect(passed.summary).toMatch(/^## Certificate passed: still true\n/)
    for (const id of ['S1', 'S2', 'S3', 'S4', 'S5', 'S6']) expect(passed.summary).toContain(`\n| ${id} | `)
    expect(passed.summary).toMatch(/\| S3 \| .* \| proved \| 1 of 1 \|/)

    const note = git(place, 'notes', '--ref=codemachine', 'show', head)
    const changed = note.replace(/"payload":"([^"]+)"/g, (_, payload: string) => {
      const text = Buffer.from(payload, 'base64').toString().replaceAll('node --test', 'true # test')
      return `"payload":"${Buffer.from(text).toString('base64')}"`
    })
    git(place, 'notes', '--ref=codemachine', 'add', '-f', '-m', changed, head)
    const tampered = await runner.step(head, { REQUIRE: 'proved' })
    expect([tampered.exitCode, tampered.summary]).toEqual([
      2,
      expect.stringContaining('was changed after it was signed'),
    ])
  },
  2 * DEMO_MS,
)
