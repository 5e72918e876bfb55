import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { openPlanBefore } from '../../../src/session/records/plan-before.ts'

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'codemachine-plan-before-'))
})
afterEach(() => rm(folder, { recursive: true }))

const plan = (name: string) => ({ before: { main: `# ${name}`, tasks: '[]' }, after: { main: '# new', tasks: '[1]' } })

test('the plan before its last change is kept for this user only, that of an earlier change no longer', async () => {
  const kept = openPlanBefore(folder)
  expect(await kept.read()).toBeNull()
  expect(await kept.keep(plan('one'))).toBe(true)
  expect(await kept.keep(plan('two'))).toBe(true)
  expect(await openPlanBefore(folder).read()).toEqual(plan('two'))
  if (process.platform !== 'win32') expect((await stat(join(folder, 'plan-before.json'))).mode & 0o777).toBe(0o600)
  await kept.drop()
  expect(await kept.read()).toBeNull()
})

test('what cannot be kept leaves nothing of an earlier change that could be taken for it', async () => {
  const kept = openPlanBefore(folder)
  await kept.keep(plan('one'))
  const long = 'x'.repeat(7 * 1024 * 1024)
  expect(await kept.keep({ before: { main: long, tasks: '' }, after: { main: long, tasks: '' } })).toBe(false)
  expect(await kept.read()).toBeNull()
  expect(await openPlanBefore(join(folder, 'gone')).keep(plan('one'))).toBe(false)
  for (const broken of ['{', '{"before":{"main":"a"}}', '[]']) {
    await writeFile(join(folder, 'plan-before.json'), broken)
    expect(await kept.read()).toBeNull()
  }
})
