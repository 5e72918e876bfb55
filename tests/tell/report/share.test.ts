import { chmod, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { SessionOutcome } from '../../../src/core/events/outcome.ts'
import { findBrowser, takePicture } from '../../../src/platform/headless-browser.ts'
import { isAlive } from '../../../src/platform/processes.ts'
import { fileDiffsOf } from '../../../src/tell/report/file-diffs.ts'
import { badgeOf } from '../../../src/tell/report/page/badge.ts'
import { markdownHtml } from '../../../src/tell/report/page/markdown.ts'
import { htmlOf } from '../../../src/tell/report/page/page.ts'
import { commitPagesAt } from '../../../src/workspace/git/remote.ts'
import { BROWSER, hasBrowser, openBrowser, WITHOUT_BROWSER } from '../../support/browser.ts'
import { timesSlower } from '../../support/cpu-time.ts'
import { promise } from '../../support/promise.ts'
import { round } from '../../support/rounds.ts'
import { openScene } from '../../support/scene.ts'
import { HOSTILE, hostileNight } from './hostile-night.ts'
import { badNight, eventfulNight, goodNight, HERE, ID, MadeUpNight } from './made-up-night.ts'

let browser: Browser | undefined

beforeAll(async () => {
  if (hasBrowser) browser = await openBrowser()
})

afterAll(() => browser?.close())

/** A page as it is seen without JavaScript. */
async function seen(html: string, width = 390) {
  if (browser === undefined) throw new Error('There is no browser.')
  const context = await browser.newContext({ viewport: { width, height: 800 }, javaScriptEnabled: false })
  const page = await context.newPage()
  await page.setContent(html)
  return { page, [Symbol.asyncDispose]: () => context.close() }
}

const HUGE = "seq 100000 > 'many lines.txt'"
const BINARY = "printf '\\0\\1\\2' > picture.bin"
const EVIL = `printf 'x\\ny\\n' > "$(printf 'evil\\033[31m\\n<b>.txt')"`
const LONG = "head -c 300000 /dev/zero | tr '\\0' a > one-line.txt; echo 'let a = \"<script>\"' > b.js"

promise(
  'O92',
  'The page has the diff of each file, folded, and says exactly what it leaves out of 100,000 lines, a binary file or a long line',
)
test.skipIf(!hasBrowser)(
  `the page of a session has the diff of each file, and says exactly what of 100,000 lines, a binary file or a long line it leaves out${WITHOUT_BROWSER}`,
  async () => {
    await using scene = await openScene([round(HUGE, BINARY, EVIL, LONG)])
    const { place } = scene
    await scene.run('--rounds', '1', 'Make files')
    const at = (await readdir(join(place.directory, '.codemachine', 'projects')))[0] ?? ''
    const atEnd = await readFile(join(place.directory, '.codemachine', 'projects', at, 'report.html'), 'utf8')
    const { stdout: html } = await scene.command(['report', '--output', '-']).ended
    for (const each of [atEnd, html]) expect(each.length).toBeLessThan(1_000_000)
    expect(atEnd).toContain('<details class="file">')
    await using shown = await seen(html)
    const { page } = shown
    const file = (name: string) => page.locator('details.file').filter({ hasText: name })
    const text = async (name: string) => (await file(name).textContent()) ?? ''
    expect(await text('many lines.txt')).toContain('+100000')
    expect(await text('many lines.txt')).toMatch(/The first 399 of 100,000 changed lines are shown here\.$/)
    expect(await text('picture.bin')).toContain('not text, or over 4 MiB')
    expect(await text('evil')).toMatch(/evil␛\[31m ⏎ <b>\.txt\+2.*\+x\n\+y/s)
    expect(await text('one-line.txt')).toMatch(/a… 299,50\d more characters/)
    expect(await text('b.js')).toContain('+let a = "<script>"')
    // Folded: nothing of them is seen before it is asked for.
    expect(await file('b.js').locator('pre').isVisible()).toBe(false)
    await file('b.js').locator('summary').click()
    expect(await file('b.js').locator('pre').isVisible()).toBe(true)
  },
)

test('a file cannot pass off its own content as the diff of another file', () => {
  const text = [
    'diff --git a/a b/a',
    '@@ -0,0 +1,2 @@',
    '+x\rdiff --git a/b b/b\r@@ -1 +1 @@\r+forged',
    '+y\u2028diff --git a/b b/b\u2028@@ -1 +1 @@\u2028+forged\n',
  ].join('\n')
  const files = ['a', 'b'].map(path => ({ path, added: 2, removed: 0 }))
  const diffs = fileDiffsOf(text, files, 2)
  expect([...diffs.keys()]).toEqual(['a'])
  const quoted = fileDiffsOf(
    'diff --git "a/t\\ta\\"b" "b/t\\ta\\"b"\n@@ -1 +1 @@\n-x\n+y\n',
    [{ path: 't\ta"b', added: 1, removed: 1 }],
    1,
  )
  expect(quoted.get('t\ta"b')).toEqual({ lines: ['@@ -1 +1 @@', '-x', '+y'], shown: 2, changed: 2, note: null })
})

describe('the timeline', () => {
  promise('O93', 'The timeline shows what happened to the second, and is drawn out without a script')
  test.skipIf(!hasBrowser)(
    `shows rounds, gates, waits, refused claims and questions to the second, and is drawn out without a script${WITHOUT_BROWSER}`,
    async () => {
      await using shown = await seen(htmlOf(goodNight().report(), HERE))
      const { page } = shown
      const drawing = page.locator('.pan svg')
      const told = await drawing.locator('title').allTextContents()
      expect(told).toContain('22:33:00 to 23:07:00 (34:00) round 1: worked')
      expect(told).toContain('23:14:00 to 01:12:00 (1:58:00) wait: usage limit: You have hit your usage limit')
      expect(told.some(each => /^22:31:\d\d to 22:32:00 \(0:41\) gate tests: failed$/.test(each))).toBe(true)
      expect(told).toContain('23:07:00 Q1: Should the switch follow the system by default?')
      expect(told.some(each => /^01:53:00 not accepted in round 2: /.test(each))).toBe(true)
      const width = async () => (await drawing.boundingBox())?.width ?? 0
      const whole = await width()
      await page.getByText('× 16').click()
      expect((await width()) / whole).toBeCloseTo(16, 0)
      expect((await page.locator('section.timeline').boundingBox())?.width).toBeLessThanOrEqual(390)
      await page.getByText('moments, to the second').last().click()
      expect(await page.locator('.timeline table').isVisible()).toBe(true)
    },
  )

  test.skipIf(!hasBrowser)(
    `says how much it leaves out of a long session, and a week away leaves the night to be seen${WITHOUT_BROWSER}`,
    async () => {
      const night = eventfulNight()
      night
        .later(7 * 24 * 60)
        .resumed()
        .round({ minutes: 30 })
      await using shown = await seen(htmlOf(night.report('running'), HERE), 1280)
      const round = shown.page.locator('.pan rect.in-bar').first()
      expect((await round.boundingBox())?.width).toBeGreaterThan(60)
      const long = new MadeUpNight()
      for (let n = 0; n < 300; n++) long.gate('tests', 'claim', 'passed')
      for (let n = 0; n < 300; n++) long.round({ minutes: 3 })
      const page = htmlOf(long.report('running'), HERE)
      expect(page).toContain('Not drawn: 100 gate runs.')
      expect(page).toContain('100 rounds that the report leaves out')
    },
  )
})

promise('O95', 'What an agent wrote as Markdown has no link, image or HTML on the page')
test.skipIf(!hasBrowser)(
  `the agent’s last words are Markdown without links, images or HTML${WITHOUT_BROWSER}`,
  async () => {
    const text = `# Done\n\n- **all** of it, see [the docs](https://example.org/x)\n\n| a | b |\n| --- | --- |\n| 1 | 2 |\n\n${HOSTILE}`
    const night = goodNight()
    const data = { ...night.report(), lastWords: text }
    await using shown = await seen(htmlOf(data, HERE))
    const prose = shown.page.locator('.prose').last()
    expect(await prose.locator('h4').first().innerText()).toBe('Done')
    expect(await prose.locator('li strong').first().innerText()).toBe('all')
    expect(await prose.locator('table').count()).toBeGreaterThan(0)
    expect(await prose.locator('a, img, script, iframe, svg, [onerror]').count()).toBe(0)
    expect(await prose.innerText()).toContain('the docs (https://example.org/x)')
    expect(await prose.innerText()).toContain('<script>window.pwned = 1</script>')
    expect(markdownHtml(`${'> '.repeat(5000)}x`).text).not.toContain('<blockquote>')
  },
)

test('of a gate that passed the end of what it printed is there, folded', async () => {
  const night = new MadeUpNight().round().gate('tests', 'claim', 'passed', `${'.'.repeat(5000)}\n42 passed`)
  const page = htmlOf(night.report('running'), HERE)
  expect(page).toMatch(/<details><summary>the end of what it printed<\/summary><pre>\.{900,1000}\n42 passed<\/pre>/)
})

promise('O94', "Commits are linked on four well-known hosts alone, without what is secret in the remote's address")
test('commits are linked where the repository has a well-known host, and without what is secret in its address', async () => {
  await using scene = await openScene([round('git add -A && git commit -qm "Take <a> step" --allow-empty')])
  const { place } = scene
  const git = join(place.directory, '.git', 'config')
  const before = await readFile(git, 'utf8')
  await scene.run('--rounds', '1', 'Commit')
  const shownWith = async (url: string) => {
    await writeFile(git, `${before}\n[include]\n\tpath = /nowhere\n[remote "origin"]\n\turl = ${url}\n`)
    const { stdout } = await scene.command(['report', '--output', '-']).ended
    expect(stdout).toContain('Take &lt;a&gt; step')
    expect(stdout).not.toContain('hunter2')
    return /<a href="([^"]*)"/.exec(stdout)?.[1]?.replace(/[0-9a-f]{40}$/, 'HASH') ?? null
  }
  expect(await shownWith('https://me:hunter2@github.com/some/thing.git')).toBe(
    'https://github.com/some/thing/commit/HASH',
  )
  expect(await shownWith('https://github.com.evil.example/a/b')).toBeNull()
  expect(commitPagesAt('git@gitlab.com:a/b/c.git')?.url).toBe('https://gitlab.com/a/b/c/-/commit/')
  expect(commitPagesAt('ssh://git@codeberg.org:22/a/b')?.url).toBe('https://codeberg.org/a/b/commit/')
  expect(commitPagesAt('https://bitbucket.org/a/b/')?.url).toBe('https://bitbucket.org/a/b/commits/')
  for (const url of [
    'https://evil.example/github.com/a/b',
    'ext::sh -c touch% /tmp/pwned',
    'javascript://github.com/a/b',
    'http://github.com/a/b',
    'https://github.com/a/../../b',
    'https://github.com/a/b"onclick=x',
  ])
    expect([url, commitPagesAt(url)]).toEqual([url, null])
})

const OUTCOMES: readonly [SessionOutcome, string][] = [
  [{ kind: 'done', verified: true }, 'done, gates pass'],
  [{ kind: 'done', verified: false }, 'done, not verified'],
  [{ kind: 'answered' }, 'answered'],
  [{ kind: 'replayed' }, 'replayed'],
  [{ kind: 'planned' }, 'planned'],
  [{ kind: 'limit', limit: 'rounds' }, 'limit reached'],
  [{ kind: 'needs-person', reason: HOSTILE, hint: null }, 'needs a person'],
  [{ kind: 'stalled', why: 'same-refusal', rounds: 3 }, 'stalled'],
  [{ kind: 'interrupted', by: 'stop' }, 'stopped'],
  [{ kind: 'interrupted', by: 'skip' }, 'skipped'],
  [{ kind: 'interrupted', by: 'SIGINT' }, 'interrupted'],
]

promise('O97', '`report --badge` says each outcome in words')
test('the badge says each outcome in words, and how many tasks are done', () => {
  for (const [outcome, words] of OUTCOMES) {
    const badge = badgeOf(eventfulNight().end(outcome).report())
    expect(badge).toContain(`aria-label="codemachine | ${words} | 5/5 tasks"`)
    expect(badge).not.toMatch(/<script|href|url\(h|pwned/)
  }
  expect(badgeOf(eventfulNight().report('running'))).toContain('codemachine | at work | 5/5 tasks')
  expect(badgeOf(eventfulNight().report('cut-off'))).toContain('codemachine | cut off')
  expect(badgeOf(new MadeUpNight().round().end({ kind: 'answered' }).report())).toContain('"codemachine | answered"')
  expect(badgeOf(hostileNight().report())).not.toContain('pwned')
  expect(badgeOf(badNight().report())).toContain('needs a person')
})

describe('codemachine report --png', () => {
  promise(
    'O96',
    '`report --png` draws the page with a browser of the machine; without one it says where the page is, and the browser never outlives it',
  )
  test.skipIf(!hasBrowser)(
    `draws the page with a browser that is there, and names the file${WITHOUT_BROWSER}`,
    async () => {
      await using scene = await openScene([round('echo one > one.txt')])
      const { place } = scene
      await scene.run('--rounds', '1', 'Make a file')
      const drawn = await scene.command(['report', '--png', 'night.png'], { env: { CODEMACHINE_BROWSER: BROWSER } })
        .ended
      expect(drawn).toMatchObject({ exitCode: 0, stderr: '', stdout: `${join(place.directory, 'night.png')}\n` })
      const png = await readFile(join(place.directory, 'night.png'))
      expect(png.subarray(1, 4).toString()).toBe('PNG')
      expect(png.readUInt32BE(16)).toBe(2560)
      expect(png.readUInt32BE(20)).toBeGreaterThan(2000)
      const badge = await scene.command(['report', '--badge']).ended
      expect(badge.stdout).toMatch(/badge\.svg\n$/)
      expect(await readFile(badge.stdout.trim(), 'utf8')).toContain('codemachine | limit reached')
      const none = await scene.command(['report', '--png'], { env: { CODEMACHINE_BROWSER: '/nowhere' } }).ended
      expect(none).toMatchObject({ exitCode: 2, stdout: '' })
      expect(none.stderr).toMatch(
        /CODEMACHINE_BROWSER names no program: \/nowhere\. \(CM0110\)\n.*The report is .*report\.html/,
      )
      const session = await scene.command(['report', '--png', ID]).ended
      expect(session).toMatchObject({ exitCode: 2, stdout: '' })
      expect(session.stderr).toContain(`codemachine report ${ID} --png`)
    },
  )

  promise('O96')
  test('ends a browser that does not answer, with all that it started, and leaves no profile', async () => {
    const root = join(tmpdir(), `picture-${process.pid}`)
    await mkdir(root, { recursive: true })
    const [browser, pid] = [join(root, 'chromium'), join(root, 'pid')]
    await writeFile(browser, `#!/bin/sh\nsleep 1000 &\necho $! > '${pid}.new'; mv '${pid}.new' '${pid}'\nwait\n`)
    await chmod(browser, 0o755)
    const signal = new AbortController().signal
    const env = { PATH: process.env.PATH, TMPDIR: root }
    const timeoutMs = Math.ceil(2000 * timesSlower())
    const options = { env, width: 100, mostHeight: 100, scale: 1, timeoutMs, signal, temporary: root }
    expect(await takePicture(browser, '<p>x', options)).toMatch(/took longer than [\d.]+ seconds$/)
    const started = Number(await readFile(pid, 'utf8'))
    expect(started).toBeGreaterThan(1)
    expect(await isAlive(started, process.platform)).toBe(false)
    await rm(root, { recursive: true })
  })

  test('looks for browsers where each system has them, and never where an agent can write', async () => {
    const root = join(tmpdir(), `browsers-${process.pid}`)
    const programs = [
      'edge/Microsoft/Edge/Application/msedge.exe',
      'home/Applications/Chromium.app/Contents/MacOS/Chromium',
      'bin/chromium',
    ]
    for (const each of programs) {
      await mkdir(join(root, each, '..'), { recursive: true })
      await writeFile(join(root, each), '', { mode: 0o755 })
    }
    const where = { workDirectory: [], gitDirectories: [], elsewhere: [], temporary: [] }
    const search = { env: { PATH: join(root, 'bin') }, home: join(root, 'home'), where }
    const found = async (more: Partial<Parameters<typeof findBrowser>[0]>) =>
      (await findBrowser({ platform: 'linux', ...search, ...more })).path
    expect(await found({})).toBe(join(root, 'bin/chromium'))
    expect(await found({ where: { ...where, workDirectory: [root] } })).toBeNull()
    expect(await found({ platform: 'darwin' })).toMatch(/Chromium$/)
    expect(await found({ env: { CODEMACHINE_BROWSER: join(root, 'bin/chromium') } })).toBe(join(root, 'bin/chromium'))
    await rm(root, { recursive: true })
  })
})
