import { open, realpath, stat } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { basename, dirname, join } from 'node:path'

/** The name under which codex's npm package is installed. */
export const CODEX_PACKAGE = '@openai/codex'

/**
 * The folder of the npm package whose launcher `file` is (a link to `bin/codex.js`, or npm's and pnpm's shims, which
 * start it by a script); null if it is something else, as a rule the native binary.
 */
export async function packageOfLauncher(file: string): Promise<string | null> {
  const real = await realpath(file)
  if (basename(real) === 'codex.js') return dirname(dirname(real))
  const started = /[$%](?:basedir|dp0%|~dp0)[\\/]+([^"'\n]*codex[\\/]bin[\\/]codex\.js)/.exec(await headOf(real))?.[1]
  if (started === undefined) return null
  const launcher = join(dirname(real), started.replaceAll('\\', '/'))
  return dirname(dirname(await realpath(launcher).catch(() => launcher)))
}

/**
 * The native binary that belongs to codex's npm package in `directory`; null if it is not installed. It lies in a
 * package of its own for each platform, in versions before 0.100 in the package itself.
 */
export async function nativeBinary(directory: string, platform: NodeJS.Platform, arch: string): Promise<string | null> {
  const triple = TRIPLES[`${platform}-${arch}`]
  if (triple === undefined) return null
  const platformPackage = platformPackageOf(directory, triple.name)
  const executable = platform === 'win32' ? 'codex.exe' : 'codex'
  for (const root of platformPackage === null ? [directory] : [platformPackage, directory]) {
    for (const folder of ['bin', 'codex']) {
      const file = join(root, 'vendor', triple.target, folder, executable)
      if (await isFile(file)) return file
    }
  }
  return null
}

/** Whether there is a file, or a link to one, at `path`. */
export async function isFile(path: string): Promise<boolean> {
  const found = await stat(path).catch(() => null)
  return found?.isFile() ?? false
}

const LINUX_X64 = { name: 'linux-x64', target: 'x86_64-unknown-linux-musl' }
const LINUX_ARM64 = { name: 'linux-arm64', target: 'aarch64-unknown-linux-musl' }

/** The platforms that codex is built for, by Node's names, as in the launcher of `@openai/codex` 0.169.0. */
const TRIPLES: Readonly<Record<string, { name: string; target: string }>> = {
  'linux-x64': LINUX_X64,
  'linux-arm64': LINUX_ARM64,
  'android-x64': LINUX_X64,
  'android-arm64': LINUX_ARM64,
  'darwin-x64': { name: 'darwin-x64', target: 'x86_64-apple-darwin' },
  'darwin-arm64': { name: 'darwin-arm64', target: 'aarch64-apple-darwin' },
  'win32-x64': { name: 'win32-x64', target: 'x86_64-pc-windows-msvc' },
  'win32-arm64': { name: 'win32-arm64', target: 'aarch64-pc-windows-msvc' },
}

/** Node's own rules find the package where npm and pnpm put it: beside codex's, inside it, or behind a link. */
function platformPackageOf(directory: string, name: string): string | null {
  try {
    return dirname(createRequire(join(directory, 'package.json')).resolve(`${CODEX_PACKAGE}-${name}/package.json`))
  } catch {
    return null
  }
}

/** The first 8 KiB of a file as text, empty if it cannot be read: the shims are shorter, and a binary is not read whole. */
async function headOf(file: string): Promise<string> {
  const handle = await open(file).catch(() => null)
  if (handle === null) return ''
  await using opened = handle
  const { buffer, bytesRead } = await opened.read(Buffer.alloc(8192), 0, 8192, 0)
  return buffer.toString('latin1', 0, bytesRead)
}
