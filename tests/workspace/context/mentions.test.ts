import { expect, test } from 'vitest'
import { findMentions } from '../../../src/modes/change/context/mentions.ts'
import { promise } from '../../support/promise.ts'
import { workDirectoryForEach } from '../../support/work-directory.ts'

const place = workDirectoryForEach('mentions')
const project = () => ({ root: place.work, redact: (text: string) => text })

/** Writes the files, and finds which of them the request names. */
function find(
  request: string,
  files: Readonly<Record<string, string | Buffer>>,
  ignored: Readonly<Record<string, string>> = {},
) {
  for (const [path, text] of Object.entries({ ...files, ...ignored })) place.write(path, text)
  return findMentions(project(), { request, paths: Object.keys(files), signal: new AbortController().signal })
}

const SHOP = {
  'src/app.ts': 'export function startShop() {}\n',
  'src/user-service.ts': 'export class UserService {\n  async login(name: string) {\n    return name\n  }\n}\n',
  'src/pay/total.py': 'MAX_ITEMS = 5\ndef total_of(items):\n    return 0\n',
  'src/pay/index.ts': '',
  'src/a/index.ts': '',
  'a file.md': 'With a space.\n',
  'README.md': 'Read me.\n',
}

test('files with @ come first, whatever stands before them', async () => {
  const { files, text } = await find(
    'Mend README.md as @src/app.ts, and @"a file.md" say (see @src/pay/total.py).',
    SHOP,
  )
  expect(files).toEqual(['src/app.ts', 'a file.md', 'src/pay/total.py', 'README.md'])
  expect(text).toContain('### `src/app.ts` (named with @)\n\n```ts\nexport function startShop() {}\n```')
  expect(text).toContain('### `README.md` (named in the request)')
})

test('a line may be named, an end of a path does, and a folder gives its first files', async () => {
  expect((await find('@src/app.ts:12 and @user-service.ts#L2.', SHOP)).files).toEqual([
    'src/app.ts',
    'src/user-service.ts',
  ])
  expect((await find('look at @pay/total.py and @src/pay/', SHOP)).files).toEqual([
    'src/pay/total.py',
    'src/pay/index.ts',
  ])
  expect((await find(`@${place.work}/src/app.ts`, SHOP)).files).toEqual(['src/app.ts'])
})

promise('C3')
test('an ignored file that is named is read; one with secrets, and what lies elsewhere, is not', async () => {
  const ignored = {
    'dist/out.js': 'built()',
    '.env': 'TOKEN=abc',
    '.env.example': 'TOKEN=yours',
    '.git/config': 'url = abc',
  }
  const request = '@dist/out.js @.env @.env.example @../outside.txt @/etc/hostname @nobody @.git/config @.'
  const { files, text, notes } = await find(request, SHOP, ignored)
  expect(files).toEqual(['dist/out.js', '.env', '.env.example', '.git/config'])
  expect(text).toContain('built()')
  expect(text).toContain('TOKEN=yours')
  expect(text).not.toContain('abc')
  expect(text).toContain('### `.env` (named with @)\n\nNot read: by its name it holds secrets.')
  expect(notes).toEqual([
    '@../outside.txt lies outside of the project, so it was not read.',
    '@/etc/hostname lies outside of the project, so it was not read.',
    '@nobody names no file of the project.',
    '@. lies outside of the project, so it was not read.',
  ])
})

test('names of files count without @, unless too many files have them', async () => {
  expect((await find('mend total.py and pay/index.ts', SHOP)).files).toEqual(['src/pay/total.py', 'src/pay/index.ts'])
  const many = Object.fromEntries([...'abcdef'].map(letter => [`${letter}/index.ts`, '']))
  expect((await find('mend index.ts', many)).files).toEqual([])
  expect((await find('the total is wrong', SHOP)).files).toEqual(['src/pay/total.py'])
})

test('names that code defines lead to where it does, and to uses where nothing defines them', async () => {
  const { files, text } = await find('`UserService.login` must call total_of and startShop(); MAX_ITEMS too', SHOP)
  expect(files.toSorted()).toEqual(['src/app.ts', 'src/pay/total.py', 'src/user-service.ts'])
  expect(text).toContain('### `src/user-service.ts` (named like UserService, defines UserService in line 1)')
  const uses = { 'a.js': "import { retryTwice } from 'x'\nretryTwice()\n", 'b.txt': 'retryTwice' }
  const found = await find('why does retryTwice fail?', uses)
  expect(found.text).toContain('### `a.js` (uses retryTwice in line 1)')
  expect(found.files).toEqual(['a.js'])
})

test.each([
  ['a.go', 'func (s *Server) handleLogin(w http.ResponseWriter) {\n'],
  ['a.rs', 'pub async fn handleLogin<T>(a: T) -> u8 {\n'],
  ['A.java', '    public static List<String> handleLogin(int a) {\n'],
  ['a.c', 'static int *handleLogin(int a) {\n'],
  ['a.rb', 'def self.handleLogin(a)\n'],
  ['a.ts', '  const handleLogin = async () => 1\n'],
  ['b.ts', '  async handleLogin(a: string): Promise<void> {\n'],
  ['a.php', 'protected function handleLogin($a)\n'],
  ['a.ex', '  defp handleLogin(a) do\n'],
])('a definition is known in %s', async (path, text) => {
  const other = 'return handleLogin(1)\nawait handleLogin(2); x.handleLogin(3)\nif (handleLogin(4)) {\n'
  const found = await find('handleLogin', { [`0-${path}`]: other, [path]: `\n${text}` })
  expect(found.files).toEqual([path])
  expect(found.text).toContain('defines handleLogin in line 2')
})

test('a long file is shown from where it matters', async () => {
  const lines = Array.from({ length: 3_000 }, (_, index) => `const value${index} = ${index}`)
  lines[2_000] = 'export function findMe() {}'
  const { text } = await find('mend findMe()', { 'long.ts': lines.join('\n') })
  expect(text).toContain('From line 1986 of 3000.\n\n```ts\nconst value1985 = 1985')
  expect(text).toContain('export function findMe() {}')
  expect(text).toMatch(/```\n\[… \d+ more bytes left out\]$/)
  expect(Buffer.byteLength(text)).toBeLessThan(7 * 1024)
})

test('many long files share the room, those with @ before the others, and a short one leaves its own to them', async () => {
  const long = Object.fromEntries([...'abcdefghij'].map(letter => [`${letter}.ts`, `${letter}\n`.repeat(20_000)]))
  const files = { 'short.ts': 'short', ...long }
  const lengths = async (request: string) => {
    const { text } = await find(request, files)
    expect(Buffer.byteLength(text)).toBeLessThan(36 * 1024)
    return text
      .split(/^### |^- /m)
      .slice(1)
      .map(each => Math.ceil(each.length / 1024))
  }
  expect(await lengths('@a.ts @short.ts @b.ts')).toEqual([12, 1, 12])
  expect(Math.min(...(await lengths('@a.ts @b.ts @c.ts @d.ts @e.ts @f.ts @g.ts')))).toBe(5)
  expect(await lengths('@a.ts @b.ts @c.ts and d.ts, e.ts')).toEqual([12, 12, 12, 1, 1])
  expect(await lengths('a.ts b.ts c.ts d.ts')).toEqual([6, 6, 6, 6])
})

test('what is no UTF-8 is read as what it is, and what is no text is named only', async () => {
  const files = {
    'latin.txt': Buffer.from('gr\xfc\xdfe', 'latin1'),
    'wide.txt': Buffer.from('\uFEFFwide', 'utf16le'),
    'picture.png': Buffer.from([0x89, 0x50, 0, 0]),
    'empty.txt': ' \n',
    'huge.txt': 'x'.repeat(1024 * 1024 + 1),
  }
  const { text } = await find(
    Object.keys(files)
      .map(path => `@${path}`)
      .join(' '),
    files,
  )
  expect(text).toContain('Read as Latin-1.\n\n```txt\ngrüße\n```')
  expect(text).toContain('Read as UTF-16.\n\n```txt\nwide\n```')
  expect(text).toContain('### `picture.png` (named with @)\n\nBinary, 4 bytes.')
  expect(text).toContain('### `empty.txt` (named with @)\n\nEmpty.')
  expect(text).toContain('### `huge.txt` (named with @)\n\nNot shown: 1.0 MiB.')
})

test('a request of any kind is gone through', async () => {
  const odd = [
    '',
    '@',
    '@""',
    '@\0',
    `@${'x'.repeat(5_000)}`,
    '@a:b:c',
    '`'.repeat(1_000),
    '@"../../x"',
    `${'@src/app.ts '.repeat(9_000)}`,
  ]
  for (const request of odd) await find(request, SHOP)
  const { files } = await find(`${'x'.repeat(64 * 1024)} @src/app.ts`, SHOP)
  expect(files).toEqual([])
})
