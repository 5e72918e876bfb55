import {
  chmod,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  realpath,
  rm,
  stat,
  symlink,
  utimes,
  writeFile,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { UserError } from '../../../src/base/errors.ts'
import { type CodexSearch, findCodex } from '../../../src/engines/codex/find-codex.ts'
import { findRealCodex } from '../../support/find-real-codex.ts'
import { promise } from '../../support/promise.ts'
import { isWindows, unless } from '../../support/skipped.ts'

const TRIPLE = 'x86_64-unknown-linux-musl'

// The codex that is found is a script that starts by "#!", and the layouts are those of Linux.
describe.skipIf(isWindows)(`which codex runs the rounds${unless(!isWindows, 'the layouts are those of Linux')}`, () => {
  let root = ''
  beforeEach(async () => {
    root = await realpath(await mkdtemp(join(tmpdir(), 'codemachine-find-')))
  })
  afterEach(() => rm(root, { recursive: true, force: true }))

  /** Writes an executable that answers `--version` as codex does. */
  async function codex(path: string, version = '0.169.0', answer = `echo "codex-cli ${version}"`): Promise<string> {
    return script(path, `#!/bin/sh\n${answer}\n`)
  }

  async function script(path: string, text: string): Promise<string> {
    const file = join(root, path)
    await mkdir(dirname(file), { recursive: true })
    await writeFile(file, text)
    await chmod(file, 0o755)
    return file
  }

  async function manifest(folder: string, name: string): Promise<void> {
    await mkdir(join(root, folder), { recursive: true })
    await writeFile(join(root, folder, 'package.json'), JSON.stringify({ name, version: '0.169.0' }))
  }

  /** Installs codex as npm does, and returns the launcher. */
  async function npmPackage(modules: string, platformModules = modules, inner = `${TRIPLE}/bin`): Promise<string> {
    await manifest(`${modules}/@openai/codex`, '@openai/codex')
    await manifest(`${platformModules}/@openai/codex-linux-x64`, '@openai/codex-linux-x64')
    await codex(`${platformModules}/@openai/codex-linux-x64/vendor/${inner}/codex`)
    return codex(`${modules}/@openai/codex/bin/codex.js`, '0.1.0')
  }

  function search(options: Partial<CodexSearch> = {}) {
    const common = { flag: null, platform: 'linux', arch: 'x64', directory: root } as const
    const packageRoot = join(root, 'codemachine')
    const where = {
      workDirectory: [join(root, 'work')],
      gitDirectories: [],
      elsewhere: [],
      temporary: [join(root, 'tmp')],
    }
    const copies = { folder: join(root, 'records/bin'), makes: true }
    return findCodex({ ...common, env: { PATH: join(root, 'bin') }, packageRoot, where, copies, ...options })
  }

  async function fault(options: Partial<CodexSearch> = {}): Promise<UserError> {
    const error = await search(options).then(
      () => null,
      (thrown: unknown) => thrown,
    )
    expect(error).toBeInstanceOf(UserError)
    return error as UserError
  }

  test('--codex-bin comes before CODEX_BIN, CODEX_BIN before PATH, PATH before node_modules', async () => {
    await npmPackage('codemachine/node_modules')
    const native = `codemachine/node_modules/@openai/codex-linux-x64/vendor/${TRIPLE}/bin/codex`
    expect(await search()).toMatchObject({ path: join(root, native), source: 'node_modules', version: '0.169.0' })

    const onPath = await codex('bin/codex', '0.160.0')
    expect(await search()).toEqual({ path: onPath, source: 'PATH', version: '0.160.0', launcher: null, remarks: [] })

    const named = await codex('named/codex', '0.161.0')
    const env = { PATH: join(root, 'bin'), CODEX_BIN: named }
    expect(await search({ env })).toEqual({
      path: named,
      source: 'CODEX_BIN',
      version: '0.161.0',
      launcher: null,
      remarks: [],
    })

    const flagged = await codex('flagged/codex', '0.170.0-alpha.1')
    expect(await search({ env, flag: 'flagged/codex' })).toEqual({
      path: flagged,
      source: 'flag',
      version: '0.170.0-alpha.1',
      launcher: null,
      remarks: [],
    })
  })

  test('an empty CODEX_BIN counts as none, and a command without a slash is looked for on PATH', async () => {
    const onPath = await codex('bin/codex-next')
    expect((await search({ flag: 'codex-next' })).path).toBe(onPath)
    await codex('bin/codex')
    expect((await search({ env: { PATH: join(root, 'bin'), CODEX_BIN: '' } })).source).toBe('PATH')
  })

  test('what is on PATH without being executable is passed over, as a shell does', async () => {
    await chmod(await codex('bin/codex', '0.157.0'), 0o644)
    const second = await codex('second/codex', '0.158.0')
    expect(await search({ env: { PATH: `${join(root, 'bin')}:${join(root, 'second')}` } })).toMatchObject({
      path: second,
    })
  })

  describe("npm's launcher stands for the native binary beside it", () => {
    const native = (modules: string, inner = `${TRIPLE}/bin`) =>
      join(root, modules, '@openai/codex-linux-x64/vendor', inner, 'codex')

    test('where npm links to it', async () => {
      const launcher = await npmPackage('global/node_modules')
      await mkdir(join(root, 'bin'))
      await symlink(launcher, join(root, 'bin/codex'))
      expect(await search()).toEqual({
        path: native('global/node_modules'),
        source: 'PATH',
        version: '0.169.0',
        launcher: join(root, 'bin/codex'),
        remarks: [],
      })
    })

    test('where the platform package lies inside the package', async () => {
      const flag = await npmPackage('g/node_modules', 'g/node_modules/@openai/codex/node_modules')
      expect((await search({ flag })).path).toBe(native('g/node_modules/@openai/codex/node_modules'))
    })

    test('where pnpm keeps packages behind links and starts them by a script', async () => {
      const store = 'pnpm/.pnpm/codex@1/node_modules'
      await npmPackage(store)
      await mkdir(join(root, 'pnpm/@openai'))
      await symlink(join(root, store, '@openai/codex'), join(root, 'pnpm/@openai/codex'))
      const start = 'exec node "$basedir/../@openai/codex/bin/codex.js" "$@"'
      const flag = await script('pnpm/.bin/codex', `#!/bin/sh\nbasedir=$(dirname "$0")\n${start}\n`)
      expect(await search({ flag })).toMatchObject({ path: native(store), launcher: flag })
    })

    test('where Windows starts it by codex.cmd', async () => {
      const modules = 'npm/node_modules'
      await npmPackage(modules)
      const triple = 'x86_64-pc-windows-msvc'
      await manifest(`${modules}/@openai/codex-win32-x64`, '@openai/codex-win32-x64')
      const binary = await codex(`${modules}/@openai/codex-win32-x64/vendor/${triple}/bin/codex.exe`)
      await script(
        'npm/codex.cmd',
        '@ECHO off\r\n"%_prog%" "%dp0%\\node_modules\\@openai\\codex\\bin\\codex.js" %*\r\n',
      )
      const env = { Path: `${join(root, 'nothing')};${join(root, 'npm')}` }
      expect(await search({ platform: 'win32', env })).toMatchObject({ path: binary, source: 'PATH' })
    })

    test('and is used itself where there is none', async () => {
      await manifest('bare/node_modules/@openai/codex', '@openai/codex')
      const launcher = await codex('bare/node_modules/@openai/codex/bin/codex.js')
      expect(await search({ flag: launcher })).toEqual({
        path: launcher,
        source: 'flag',
        version: '0.169.0',
        launcher,
        remarks: [],
      })
    })
  })

  describe('what is wrong is one sentence that names the place', () => {
    test('no codex anywhere', async () => {
      const error = await fault()
      expect(error.message).toBe(
        'No codex was found: neither by --codex-bin or CODEX_BIN, nor on the PATH or in node_modules.',
      )
      expect(error.hint).toContain('npm install --global @openai/codex')
      expect(error.exitCode).toBe(2)
    })

    test('a file that is not there', async () => {
      const message = (what: string) => `${what}, but there is no such file; correct`
      expect((await fault({ flag: 'a/codex' })).message).toContain(message(`--codex-bin names ${root}/a/codex`))
      expect((await fault({ env: { CODEX_BIN: '/a' } })).message).toContain(message('CODEX_BIN names /a'))
    })

    test('a file that is not executable', async () => {
      const flag = await codex('codex')
      await chmod(flag, 0o644)
      expect((await fault({ flag })).message).toBe(`--codex-bin names ${flag}, which is not executable.`)
    })

    test('a program that is not codex', async () => {
      await codex('bin/codex', '', 'echo "codex 3, a codec"')
      expect((await fault()).message).toBe(
        `PATH leads to ${root}/bin/codex, which is not codex: \`--version\` answered "codex 3, a codec".`,
      )
      const silent = await codex('silent', '', 'exit 7')
      expect((await fault({ flag: silent })).message).toContain('`--version` answered nothing')
      const broken = await script('broken', '#!/no/such/interpreter\n')
      expect((await fault({ flag: broken })).message).toContain('`--version` could not be run (ENOENT)')
    })

    test('a script on Windows behind which no program of npm is', async () => {
      await script('npm/codex.cmd', '@ECHO off\r\nnode "%dp0%\\somewhere\\codex.mjs" %*\r\n')
      const error = await fault({ platform: 'win32', env: { Path: join(root, 'npm') } })
      expect(error.message).toBe(`PATH leads to ${root}/npm/codex.cmd, which Windows does not start without a shell.`)
      expect(error.hint).toContain('codex.exe')
      const launcher = await codex('bare/bin/codex.js')
      expect((await fault({ platform: 'win32', flag: launcher })).message).toContain('--codex-bin names')
    })

    test('a codex that is too old', async () => {
      await codex('bin/codex', '0.156.9')
      const error = await fault()
      expect(error.message).toBe(
        `PATH leads to ${root}/bin/codex, which is codex 0.156.9, but codemachine needs 0.157.0 or newer.`,
      )
      expect(error.hint).toContain('@openai/codex@latest')
    })
  })

  promise('B13')
  describe('a codex that an agent can have written', () => {
    /** Writes an executable that leaves a trace when it is run. */
    const planted = (path: string) => codex(path, '', `touch "${root}/ran"; echo "codex-cli 0.200.0"`)
    const hasRun = async () => (await readdir(root)).includes('ran')
    const pathOf = (...folders: string[]) => ({ PATH: folders.map(folder => join(root, folder)).join(':') })

    test('is passed over on PATH, named, and not even asked for its version', async () => {
      const inWork = await planted('work/node_modules/.bin/codex')
      const inTemporary = await planted('tmp/codex')
      const sound = await codex('bin/codex')
      const found = await search({ env: pathOf('work/node_modules/.bin', 'tmp', 'bin') })
      expect(found).toMatchObject({ path: sound, source: 'PATH' })
      expect(found.remarks.join()).toContain(`${inWork}, ${inTemporary}`)
      expect(await hasRun()).toBe(false)
    })

    test('is passed over where a link leads to it from elsewhere, and where a bare name is to be found on PATH', async () => {
      await mkdir(join(root, 'bin'))
      await symlink(await planted('work/codex'), join(root, 'bin/codex'))
      expect((await fault()).hint).toContain(`${root}/bin/codex`)
      await planted('codex')
      expect((await fault({ flag: 'codex' })).message).toContain('there is none on PATH')
      expect(await hasRun()).toBe(false)
    })

    test('is no codex at all where there is no other, in the node_modules of codemachine neither', async () => {
      await planted('work/node_modules/.bin/codex')
      await npmPackage('work/node_modules')
      const env = pathOf('work/node_modules/.bin')
      const error = await fault({ env, packageRoot: join(root, 'work') })
      expect(error.message).toContain('No codex was found')
      expect(error.hint).toContain('node_modules/.bin/codex')
      expect(error.hint).toContain('node_modules/@openai/codex/bin/codex.js')
      expect(await hasRun()).toBe(false)
    })

    test('is not named where it leads to the very codex that is used', async () => {
      const launcher = await npmPackage('codemachine/node_modules')
      await mkdir(join(root, 'tmp/.bin'), { recursive: true })
      await symlink(launcher, join(root, 'tmp/.bin/codex'))
      expect(await search({ env: pathOf('tmp/.bin') })).toMatchObject({ source: 'node_modules', remarks: [] })
    })

    test('in the work directory is used where it is named: a copy of it in the records, with what lies beside it', async () => {
      const flag = await npmPackage('work/node_modules')
      const vendor = `work/node_modules/@openai/codex-linux-x64/vendor/${TRIPLE}`
      await script(`${vendor}/codex-path/rg`, '#!/bin/sh\n')
      const { path, version, launcher } = await search({ flag })
      expect([version, launcher]).toEqual(['0.169.0', flag])
      expect(path.startsWith(join(root, 'records/bin'))).toBe(true)
      expect((await stat(join(root, 'records/bin'))).mode & 0o777).toBe(0o700)
      expect((await stat(join(path, '../../codex-path/rg'))).mode & 0o111).not.toBe(0)
      expect(await search({ flag })).toMatchObject({ path, remarks: [] })

      // Written anew with the same content, as by another `npm ci`.
      const native = join(root, vendor, 'bin/codex')
      await utimes(native, 1, 1)
      expect(await search({ flag })).toMatchObject({ path, remarks: [] })

      await planted(`${vendor}/bin/codex`)
      const after = await search({ flag })
      expect(after).toMatchObject({ path, version: '0.169.0' })
      expect(after.remarks.join()).toContain('has changed since codemachine copied it')
      expect(await hasRun()).toBe(false)
    })

    test('in the work directory is copied once where several commands name it at the same time', async () => {
      const flag = await npmPackage('work/node_modules')
      const found = await Promise.all(Array.from({ length: 8 }, () => search({ flag })))
      expect(new Set(found.map(({ path, version }) => `${version} ${path}`)).size).toBe(1)
      expect(await readdir(join(root, 'records/bin'))).toHaveLength(1)
    })

    test('in the work directory is not copied by a command that writes no records', async () => {
      const flag = await codex('work/codex')
      const copies = { folder: join(root, 'records/bin'), makes: false }
      expect(await search({ flag, copies })).toMatchObject({ path: flag })
      const { path } = await search({ flag })
      expect(await search({ flag, copies })).toMatchObject({ path })
    })
  })

  test('looking for codex makes nothing in the home of codex, as a plain `codex --version` does', async () => {
    const leaves = 'home=$HOME/.codex; [ -n "$CODEX_HOME" ] && home=$CODEX_HOME; mkdir -p "$home/tmp" 2>/dev/null'
    await codex('bin/codex', '', `${leaves}; echo codex-cli 0.169.0`)
    const mine = join(root, 'mine')
    for (const env of [{ HOME: root }, { HOME: root, CODEX_HOME: mine }]) {
      await search({ env: { ...env, PATH: `${join(root, 'bin')}:/usr/bin:/bin` } })
    }
    expect((await readdir(root)).sort()).toEqual(['bin'])
  })

  test('what codex says its version is, is remembered of this very file; any other file, and a script, is asked', async () => {
    const remembered = join(root, 'codex.json')
    const { path, version } = await findRealCodex()
    const real = { flag: path, remembered }
    expect(await search(real)).toMatchObject({ path, version })
    const known = JSON.parse(await readFile(remembered, 'utf8'))
    await writeFile(remembered, JSON.stringify({ ...known, version: '0.160.0' }))
    expect(await search(real)).toMatchObject({ path, version: '0.160.0' })

    const isTooOld = { ...known, version: '0.1.0' }
    await writeFile(remembered, JSON.stringify(isTooOld))
    expect((await fault(real)).message).toContain('needs 0.157.0 or newer')

    for (const other of [{ ...isTooOld, stamp: '1 2 3 4' }, { ...isTooOld, program: '/bin/codex' }, 'torn', null]) {
      await writeFile(remembered, JSON.stringify(other).slice(0, other === 'torn' ? 3 : undefined))
      expect(await search(real)).toMatchObject({ path, version })
    }

    await rm(remembered)
    const asked = await codex('bin/codex', '0.160.0')
    expect(await search({ remembered })).toMatchObject({ path: asked, version: '0.160.0' })
    await expect(readFile(remembered)).rejects.toThrow('ENOENT')
    await search({ ...real, copies: { folder: join(root, 'records/bin'), makes: false } })
    await expect(readFile(remembered)).rejects.toThrow('ENOENT')
  })

  test('the shim of a version manager, a small program that starts another codex tomorrow, is asked each time', async () => {
    const remembered = join(root, 'codex.json')
    // No kernel takes it for a program of its own, so it is the shell that runs it.
    const flag = await script('shims/codex', '\x7fELF\necho "codex-cli 0.160.0"\n')
    expect((await search({ flag, remembered })).version).toBe('0.160.0')
    await expect(readFile(remembered)).rejects.toThrow('ENOENT')
  })

  test('a codex that somebody built from its sources, 0.0.0, is not too old', async () => {
    await codex('bin/codex', '0.0.0')
    expect((await search()).version).toBe('0.0.0')
  })
})

test('the codex that codemachine is developed with is found in its node_modules', async () => {
  const found = await findRealCodex()
  expect(found.source).toBe('node_modules')
  expect(found.path).toMatch(/vendor[\\/].*[\\/]codex(\.exe)?$/)
})
