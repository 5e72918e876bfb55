import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { incident, promise } from '../../support/promise.ts'
import { claimDone, round } from '../../support/rounds.ts'
import { openScene } from '../../support/scene.ts'

promise('B42', 'Pipes and a sparse file of 1 TiB that a round leaves where git reads cost a session seconds')
incident('lost night', 'A pipe in the place of a `.gitignore` made git wait for ever, and the session with it', {
  since: '2026-11-21',
  fixed: '2026-11-22',
  foundBy: 'a trial',
})
test('a round that leaves pipes where git reads its rules hangs nothing: they are renamed, said, and the session is done', async () => {
  const pipes = 'mkdir -p deep; rm -f .gitignore; mkfifo .gitignore deep/.gitignore; truncate -s 1T data.mdb'
  await using scene = await openScene([round(pipes), round(claimDone), round(claimDone)])
  const { exitCode, stdout } = await scene.run('--plain', '--rounds', '4', 'build X')
  expect(stdout).toContain(
    '.gitignore is a pipe, at which git would wait for ever; it was renamed to .gitignore.broken-1.',
  )
  expect(stdout).toContain('deep/.gitignore.broken-1')
  expect(stdout).toContain('data.mdb is larger than max_file_size (2.0 GiB)')
  expect(exitCode).toBe(0)
})

promise('B43', "A file of the person's at which git would wait is named in one sentence, exit code 4")
test('a pipe as .git/config is one sentence that names it, and ends the run for a person', async () => {
  await using scene = await openScene([])
  const { directory } = scene.place
  execFileSync('git', ['init', '--quiet'], { cwd: directory })
  execFileSync('rm', [join(directory, '.git/config')])
  execFileSync('mkfifo', [join(directory, '.git/config')])
  const { exitCode, stderr } = await scene.run('--plain', 'build X')
  expect(stderr).toMatch(
    /^codemachine: git cannot look at .*: \.git\/config is a pipe, at which git would wait for ever; /m,
  )
  expect(stderr).not.toMatch(/^ +at /m)
  expect(exitCode).toBe(4)
})
