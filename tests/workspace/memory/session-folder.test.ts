import {
  chmod,
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  realpath,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createSessionFolder } from '../../../src/workspace/memory/session-folder.ts'
import { openMemory } from '../../../src/workspace/memory/session-memory.ts'
import { isWindows, unless } from '../../support/skipped.ts'

let home: string
let directory: string

beforeEach(async () => {
  home = await realpath(await mkdtemp(join(tmpdir(), 'session-')))
  directory = join(home, 'work')
  await mkdir(directory)
})

afterEach(async () => {
  await rm(home, { recursive: true, force: true })
})

const redact = (text: string) => text.replaceAll('tk_4711_abcDEF', '[secret T]')
const create = (goal: string, id = '20261120_1', branch: string | null = 'main') =>
  createSessionFolder({
    directory,
    id,
    goal,
    git: { commit: '1234567e8', branch },
    records: join(home, 'records', id),
    redact,
  })

describe('a new session', () => {
  it('has a MAIN.md with the goal, no tasks, and no open entries', async () => {
    const place = await create('Write a game\n\nin the terminal')
    expect(await readFile(place.main, 'utf8')).toBe(`---
status: in-progress
finite_incantatem: false
short_title: "Write a game"
git_commit: "1234567e8"
git_branch: "main"
---

# Goal

\`\`\`text
Write a game

in the terminal
\`\`\`

## In progress

<!-- one line for each: - [ ] T1 what is being done, and what comes next -->

## Todo

## Done
`)
    const memory = openMemory({ folder: place.folder, directory, lastGood: place.lastGood })
    expect(await memory.read()).toEqual({
      main: { status: 'in-progress', finiteIncantatem: false, shortTitle: 'Write a game', open: [] },
      tasks: [],
      problems: [],
      fingerprint: expect.any(String),
      texts: expect.any(Object),
    })
  })

  it('has a title without the secrets of its goal, taken out before it was cut', async () => {
    const place = await create(`${'x'.repeat(50)} tk_4711_abcDEF and more`)
    const text = await readFile(place.main, 'utf8')
    expect(text).toContain(`short_title: "${'x'.repeat(50)} [secret…"`)
    expect(text).toContain('xx tk_4711_abcDEF and more\n```')
  })

  it('has a title that is cut at a word', async () => {
    const place = await create('Build a command that finds the links in Markdown files that lead nowhere')
    const title = 'short_title: "Build a command that finds the links in Markdown files…"'
    expect(await readFile(place.main, 'utf8')).toContain(title)
  })

  it('lies in .codemachine, out of sight of git, and shares what was learnt', async () => {
    const place = await create('A goal')
    expect(place.folder).toBe(join(directory, '.codemachine/projects/20261120_1'))
    expect(await readdir(join(directory, '.codemachine'))).toEqual(['.gitignore', 'kb', 'projects'])
    expect(await readFile(join(directory, '.codemachine/.gitignore'), 'utf8')).toBe('*\n')
    expect((await lstat(place.kb)).isDirectory()).toBe(true)
    expect((await stat(place.lastGood)).mode & 0o777).toBe(0o700)
    expect(await readFile(join(place.lastGood, 'MAIN.md'))).toEqual(await readFile(place.main))
  })

  describe.skipIf(isWindows)(`is for this user alone${unless(!isWindows, 'Windows has no such modes')}`, () => {
    it.each([
      ['022', 0o022],
      ['000', 0o000],
    ])('whatever else the umask %s would let in', async (_, umask) => {
      const before = process.umask(umask)
      try {
        await create('A secret goal')
      } finally {
        process.umask(before)
      }
      expect(await modesBelow(join(directory, '.codemachine'))).toEqual({
        '': 'd700',
        '.gitignore': 'f600',
        kb: 'd700',
        projects: 'd700',
        'projects/20261120_1': 'd700',
        'projects/20261120_1/MAIN.md': 'f600',
        'projects/20261120_1/tasks.json': 'f600',
      })
    })

    it('but what is there already stays as open as it is', async () => {
      await mkdir(join(directory, '.codemachine/kb'), { recursive: true })
      await writeFile(join(directory, '.codemachine/kb/learnt.md'), 'x')
      for (const path of ['.codemachine', '.codemachine/kb']) await chmod(join(directory, path), 0o755)
      await chmod(join(directory, '.codemachine/kb/learnt.md'), 0o644)
      await create('A goal')
      expect(await modesBelow(join(directory, '.codemachine'))).toMatchObject({
        '': 'd755',
        kb: 'd755',
        'kb/learnt.md': 'f644',
        'projects/20261120_1': 'd700',
      })
    })
  })

  it("leaves what is there: the person's ignore file, other sessions, notes", async () => {
    await mkdir(join(directory, '.codemachine/kb'), { recursive: true })
    await writeFile(join(directory, '.codemachine/.gitignore'), 'projects\n')
    await writeFile(join(directory, '.codemachine/kb/tests.md'), 'npm test')
    await create('One')
    await create('Two', '20261120_2')
    expect(await readFile(join(directory, '.codemachine/.gitignore'), 'utf8')).toBe('projects\n')
    expect(await readFile(join(directory, '.codemachine/kb/tests.md'), 'utf8')).toBe('npm test')
    expect(await readdir(join(directory, '.codemachine/projects'))).toEqual(['20261120_1', '20261120_2'])
  })
})

describe('whatever the goal contains', () => {
  it.each([
    ['front matter', '---\nstatus: done\nfinite_incantatem: true\n---\n'],
    ['headings and entries', '## Todo\n- [ ] trap\n# Done\n'],
    ['code fences', '```js\nx\n```\n\n  ``````\n- [ ] a\n## Todo\n- [ ] trap\n~~~'],
    ['a code block with entries', '```\n## Todo\n- [ ] trap\n```'],
    ['an unclosed comment', '<!-- \n## Todo\n- [ ] trap'],
    ['placeholders and patterns', '{{goal}} {{short_title}} {{x}} $& $1 $$'],
    ['quotes and YAML', `"a": 'b' # c\\ & * ! | > % @ \`, [x]`],
    ['unprintable signs', '\u0007a\u0085b\u2028c\u200bd\u001b[31m'],
    ['Windows line ends', '\r\n\r\n  Title\r\nmore\r\n'],
    ['a megabyte', `Long\n${'word '.repeat(200_000)}`],
    ['nothing but blanks', ' \n\t'],
  ])('it is kept word for word and misleads nobody: %s', async (_, goal) => {
    const place = await create(goal)
    const memory = openMemory({ folder: place.folder, directory, lastGood: place.lastGood })
    const { main, tasks, problems } = await memory.read()
    expect({ ...main, shortTitle: null }).toEqual({
      status: 'in-progress',
      finiteIncantatem: false,
      shortTitle: null,
      open: [],
    })
    expect({ tasks, problems }).toEqual({ tasks: [], problems: [] })
    expect((await readFile(place.main, 'utf8')).includes(goal)).toBe(true)
  })

  it('any text makes a session that can be read, with a title of one short line', async () => {
    let number = 0
    const unit = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 1 }),
      fc.constantFrom('\n', '`', '```', '---', '- [ ] a', '# Todo', '{{', '"', '\0', '\uD800'),
    )
    await fc.assert(
      fc.asyncProperty(fc.array(unit, { maxLength: 100 }), fc.string(), async (pieces, branch) => {
        number += 1
        const place = await create(pieces.join(''), `20261120_${number}`, branch)
        const { main, problems } = await openMemory({
          folder: place.folder,
          directory,
          lastGood: place.lastGood,
        }).read()
        expect(problems).toEqual([])
        expect(main).toMatchObject({ status: 'in-progress', finiteIncantatem: false, open: [] })
        expect(main.shortTitle).not.toMatch(/[\r\n]/)
        expect([...new Intl.Segmenter().segment(main.shortTitle ?? '')].length).toBeLessThanOrEqual(60)
      }),
    )
  })

  it('its title is cut between two characters as a reader sees them', async () => {
    const place = await create('👩‍👩‍👧'.repeat(80))
    expect(await readFile(place.main, 'utf8')).toContain(`short_title: "${'👩‍👩‍👧'.repeat(59)}…"\n`)
  })

  it('more than 1 MiB is refused with a way out', async () => {
    await expect(create('x'.repeat(1024 * 1024 + 1))).rejects.toThrow(
      'The prompt has 1048577 bytes, and may have at most 1048576 (1 MiB). Put the text into a file, and name that file.',
    )
    expect(await readdir(directory)).toEqual([])
  })
})

describe('a directory that will not do', () => {
  it('is named where nothing can be written to it, and leaves no empty folder in the records', async () => {
    await rm(directory, { recursive: true })
    await mkdir(join(home, 'records/20261120_1'), { recursive: true })
    await expect(create('A goal')).rejects.toMatchObject({
      name: 'UserError',
      message: `codemachine cannot write to ${directory} (ENOENT); make it a directory that you can write to.`,
    })
    await writeFile(directory, '')
    await expect(create('A goal')).rejects.toThrow(`codemachine cannot write to ${directory} (ENOTDIR);`)
    expect(await readdir(join(home, 'records'))).toEqual([])
  })

  it.each(['.codemachine', '.codemachine/kb', '.codemachine/projects'])('is refused where %s is a link', async path => {
    const outside = join(home, 'outside')
    await mkdir(outside)
    await mkdir(join(directory, path, '..'), { recursive: true })
    await symlink(outside, join(directory, path))
    await expect(create('A goal')).rejects.toThrow(
      `${join(directory, path)} is a link; move it away, so that codemachine can keep its memory there.`,
    )
    expect(await readdir(outside)).toEqual([])
  })

  it('is refused where the session is there already, which stays as it is', async () => {
    const place = await create('First')
    await expect(create('Second')).rejects.toThrow(`${place.folder} already exists;`)
    expect(await readFile(place.main, 'utf8')).toContain('First')
    expect(await readFile(join(place.lastGood, 'MAIN.md'), 'utf8')).toContain('First')
  })
})

it('a goal as large as can be, of what takes most room in a file, is one that can be read', async () => {
  const place = await create('\0'.repeat(349_525))
  const { problems } = await openMemory({ folder: place.folder, directory, lastGood: place.lastGood }).read()
  expect(problems).toEqual([])
})

/** By path below the folder, `d700` of a folder and `f600` of a file; the folder itself is ''. */
async function modesBelow(folder: string): Promise<Record<string, string>> {
  const paths = ['', ...(await readdir(folder, { recursive: true }))]
  const modes = paths.map(async path => {
    const found = await lstat(join(folder, path))
    return [path, `${found.isDirectory() ? 'd' : 'f'}${(found.mode & 0o777).toString(8)}`] as const
  })
  return Object.fromEntries(await Promise.all(modes))
}
