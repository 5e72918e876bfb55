import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { gatherContext } from '../../../src/modes/change/context/gather.ts'
import { cpuMs, timesSlower } from '../../support/cpu-time.ts'
import { promise } from '../../support/promise.ts'
import { workDirectoryForEach } from '../../support/work-directory.ts'

const place = workDirectoryForEach('context-of-many')

/** What the programs have computed that this process has run and that have ended, ms; 0 where there is no `/proc`. */
function childrenMs(): number {
  if (!existsSync('/proc/self/stat')) return 0
  const stat = readFileSync('/proc/self/stat', 'utf8')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[13]) + Number(fields[14])) * 10
}

promise('C1', 'The context of a repository with 100,000 files is gathered in three seconds')
test('the context of a repository with a hundred thousand files is gathered in three seconds', async () => {
  place.git('init', '--quiet')
  for (let folder = 0; folder < 1_000; folder += 1) {
    const path = join(place.work, `part${folder % 40}/folder${folder}`)
    mkdirSync(path, { recursive: true })
    // The same in each, so that git has fewer objects to write.
    const text = `export function name${folder}() {}\n`
    for (let file = 0; file < 100; file += 1) writeFileSync(join(path, `file${file}.ts`), text)
  }
  place.write('package.json', JSON.stringify({ scripts: { test: 'vitest' } }))
  place.write('.cursor/rules/types.mdc', '---\nglobs: "**/*.none"\n---\nUse types.\n')
  place.commit()
  place.write('part1/new.ts', '')
  const gitDir = join(place.base, 'records/looks')
  const { signal } = new AbortController()
  const env = place.environment()
  const request = 'mend @part1/new.ts, name40() and nothingSuch()'
  const before = cpuMs() + childrenMs()
  const { text, facts } = await gatherContext({
    directory: place.work,
    gitDir,
    env,
    redact: text => text,
    request,
    signal,
  })
  const took = cpuMs() + childrenMs() - before
  expect(took).toBeLessThan(3_000 * timesSlower())
  expect(facts).toMatchObject({ dirty: 1, entries: 100_003, commands: [{ run: 'npm test' }] })
  expect(facts.mentioned).toEqual(['part1/new.ts', ...[0, 1, 10].map(file => `part0/folder40/file${file}.ts`)])
  expect(Buffer.byteLength(text)).toBeLessThanOrEqual(120 * 1024)
})
