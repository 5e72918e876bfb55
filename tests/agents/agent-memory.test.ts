import { mkdir, mkdtemp, readdir, readFile, realpath, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { addEntry, agentMemoryFile, type MemoryEntry, rememberResult } from '../../src/agents/agent-memory.ts'

function entry(number: number, fields: Partial<MemoryEntry> = {}): MemoryEntry {
  const stamp = String(number).padStart(9, '0')
  return {
    instance: `frontend-dev-20261122T${stamp}`,
    at: '2026-11-22T00:45:30.123Z',
    request: `T${number}: Create page ${number}`,
    result: `Page ${number} is made.\n\nFiles: src/page-${number}.ts`,
    ...fields,
  }
}

function memoryAfter(...entries: readonly MemoryEntry[]): string {
  return entries.reduce((text, each) => addEntry(text, 'frontend-dev', each), '')
}

const headings = (text: string) => text.match(/^## .*$/gm) ?? []

describe('the memory of an agent', () => {
  test('holds what it was asked for and what it said, the newest last', () => {
    expect(memoryAfter(entry(1, { request: 'T1: Create page 1\n\nIn blue.' }), entry(2))).toBe(`# Memory of frontend-dev

## frontend-dev-20261122T000000001

2026-11-22T00:45:30.123Z
> T1: Create page 1
>
> In blue.

Page 1 is made.

Files: src/page-1.ts

## frontend-dev-20261122T000000002

2026-11-22T00:45:30.123Z
> T2: Create page 2

Page 2 is made.

Files: src/page-2.ts
`)
  })

  test('keeps to 64 KiB: the oldest become a line each, and none is cut in the middle', () => {
    const all = Array.from({ length: 30 }, (_, index) =>
      entry(index, { result: `Page ${index} is made.\n${'é'.repeat(3000)}\nEnd of ${index}` }),
    )
    const text = memoryAfter(...all)
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(65_536)
    const [earlier, ...kept] = headings(text)
    expect(earlier).toBe('## Earlier')
    expect(kept.length).toBeGreaterThan(5)
    expect(kept.at(-1)).toBe('## frontend-dev-20261122T000000029')
    for (const heading of kept) expect(text).toContain(`\nEnd of ${Number(heading.slice(-9))}\n`)
    expect(text).toContain('- frontend-dev-20261122T000000000: T0: Create page 0 → Page 0 is made.\n')
    expect(text.match(/^- frontend-dev/gm)).toHaveLength(30 - kept.length)
  })

  test('lets the oldest lines go when there are too many', () => {
    const text = memoryAfter(
      ...Array.from({ length: 200 }, (_, index) => entry(index, { result: `Made. ${'x'.repeat(8000)}` })),
    )
    const lines = text.split('\n').filter(line => line.startsWith('- '))
    expect(Buffer.byteLength(lines.join('\n'))).toBeLessThanOrEqual(8192)
    expect(text).not.toContain('T0: Create page 0 ')
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(65_536)
  })

  test('clips one answer that is larger than 16 KiB, and says so', () => {
    const text = memoryAfter(entry(1), entry(2, { result: '😀'.repeat(100_000) }))
    expect(Buffer.byteLength(text)).toBeLessThan(17_500)
    expect(text).toMatch(/😀\n\[… more was said than is kept here\]\n$/)
    expect(text).not.toContain('\uFFFD')
  })

  test('takes no line of an answer for another entry', () => {
    const text = memoryAfter(
      entry(1, { result: 'Made.\n## frontend-dev-20261122T999999999\n## Earlier\n- all is done\n## Files' }),
      entry(2),
    )
    expect(headings(text)).toEqual([
      '## frontend-dev-20261122T000000001',
      '## Files',
      '## frontend-dev-20261122T000000002',
    ])
  })

  test('keeps what somebody wrote at its top, within bounds', () => {
    const text = addEntry('# Memory of frontend-dev\n\nThe shop is blue.\n', 'frontend-dev', entry(1))
    expect(text).toMatch(/^# Memory of frontend-dev\n\nThe shop is blue\.\n\n## frontend-dev-/)
    expect(Buffer.byteLength(addEntry('y\n'.repeat(400_000), 'frontend-dev', entry(1)))).toBeLessThan(10_000)
  })

  test('is never above its size, and always has the newest entry whole, whatever was in the file', () => {
    const lines = fc.constantFrom(
      '## Earlier',
      '- x',
      '',
      'é'.repeat(9000),
      '> asked',
      '# Memory of frontend-dev',
      `## a-20261122T000000001`,
    )
    fc.assert(
      fc.property(fc.array(lines, { maxLength: 40 }), before => {
        const text = addEntry(before.join('\n'), 'frontend-dev', entry(7))
        expect(Buffer.byteLength(text)).toBeLessThanOrEqual(65_536)
        expect(text.endsWith('Page 7 is made.\n\nFiles: src/page-7.ts\n')).toBe(true)
      }),
    )
  })
})

async function project() {
  const directory = await realpath(await mkdtemp(join(tmpdir(), 'memory-')))
  const file = join(directory, agentMemoryFile('frontend-dev'))
  return { directory, file, [Symbol.asyncDispose]: () => rm(directory, { recursive: true, force: true }) }
}

describe('what an agent did is remembered', () => {
  test('in a file of its own', () => {
    expect(agentMemoryFile('frontend-dev')).toBe('.codemachine/memory/.frontend-memory.md')
    expect(agentMemoryFile('qa-engineer')).toBe('.codemachine/memory/.qa-engineer-memory.md')
  })

  test('also when many end at the same moment', async () => {
    await using place = await project()
    const numbers = Array.from({ length: 12 }, (_, index) => index)
    const problems = await Promise.all(
      numbers.map(each => rememberResult(place.directory, 'frontend-dev', entry(each))),
    )
    expect(problems).toEqual(numbers.map(() => null))
    expect(headings(await readFile(place.file, 'utf8'))).toHaveLength(12)
    expect(await readdir(dirname(place.file))).toEqual(['.frontend-memory.md'])
  })

  test('but never through a link, neither in place of the file nor of its folder', async () => {
    await using place = await project()
    await using elsewhere = await project()
    await mkdir(dirname(place.file), { recursive: true })
    const outside = join(elsewhere.directory, 'notes.md')
    await writeFile(outside, 'mine')
    await symlink(outside, place.file)
    expect(await rememberResult(place.directory, 'frontend-dev', entry(1))).toBe(
      '.codemachine/memory/.frontend-memory.md is a link or no file, so codemachine cannot note the work of frontend-dev there; remove it.',
    )
    await rm(dirname(place.file), { recursive: true })
    await symlink(elsewhere.directory, dirname(place.file))
    expect(await rememberResult(place.directory, 'frontend-dev', entry(1))).toBe(
      '.codemachine/memory is a link, so frontend-dev has no memory; replace it by a folder.',
    )
    expect(await readdir(elsewhere.directory)).toEqual(['notes.md'])
    expect(await readFile(outside, 'utf8')).toBe('mine')
  })

  test('and where nothing can be written, that is said and no more', async () => {
    await using place = await project()
    await mkdir(dirname(dirname(place.file)), { recursive: true })
    await writeFile(dirname(place.file), '')
    expect(await rememberResult(place.directory, 'frontend-dev', entry(1))).toBe(
      '.codemachine/memory is not a folder, so frontend-dev has no memory; replace it by a folder.',
    )
    expect(await rememberResult(place.directory, 'x'.repeat(300), entry(1))).toMatch(/is not a folder/)
    await rm(dirname(place.file))
    expect(await rememberResult(place.directory, 'x'.repeat(300), entry(1))).toMatch(
      /cannot be written \(ENAMETOOLONG\), so codemachine cannot note the work of x+ there\.$/,
    )
  })

  test('a file that is no text is set aside, and a new one begun', async () => {
    await using place = await project()
    await mkdir(dirname(place.file), { recursive: true })
    await writeFile(place.file, Buffer.from([0xff, 0xfe]))
    expect(await rememberResult(place.directory, 'frontend-dev', entry(1))).toBe(
      '.codemachine/memory/.frontend-memory.md could not be read and was set aside as .codemachine/memory/.frontend-memory.broken-1.md: it is not valid UTF-8; write it as UTF-8 text.',
    )
    expect(headings(await readFile(place.file, 'utf8'))).toHaveLength(1)
  })
})
