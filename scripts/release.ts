import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process, { argv, env, exit, versions } from 'node:process'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { MOST_BYTES, releasedChangelog, strangersIn, withAbsoluteLinks } from './release-parts.ts'

/**
 * `npm run release -- VERSION [--dry-run] [--no-gates]`: makes the tarball of a release from the last commit, installs it in an
 * empty folder, plays the demo with it, and runs our own gates on the same tree. Writes the tarball and `release.json` into
 * `dist-release/`. Without `--dry-run` it also commits the version and the changelog, and makes the tag; pushing the tag publishes.
 * Exit code 1 if anything is missing, 2 if the call is wrong.
 */

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const { values, positionals } = parseArgs({
  args: argv.slice(2),
  allowPositionals: true,
  options: { 'dry-run': { type: 'boolean', default: false }, 'no-gates': { type: 'boolean', default: false } },
})
const isDryRun = values['dry-run']
const [version, ...more] = positionals
if (version === undefined || more.length > 0 || !/^\d+\.\d+\.\d+(?:-[a-z\d.]+)?$/.test(version)) {
  console.error('Usage: npm run release -- VERSION [--dry-run] [--no-gates], with a version such as 0.2.0')
  exit(2)
}
const problems: string[] = []
const began = Date.now()
const manifest = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
const run = (cwd: string, program: string, args: readonly string[], extra: NodeJS.ProcessEnv = {}) =>
  execFileSync(program, args, {
    cwd,
    encoding: 'utf8',
    env: { ...env, ...extra },
    stdio: ['ignore', 'pipe', 'pipe'],
    maxBuffer: 256 << 20,
    timeout: 60 * 60_000,
  })
const git = (...args: string[]) => run(ROOT, 'git', args).trim()
const say = (label: string, text: string) => console.log(`${label.padEnd(10)} ${text}`)

const place = mkdtempSync(join(tmpdir(), 'codemachine-release-'))
try {
  const commit = git('rev-parse', 'HEAD')
  if (git('status', '--porcelain') !== '') problems.push('the checkout has uncommitted changes, which no release has')
  if (git('tag', '--list', `v${version}`) !== '') problems.push(`the tag v${version} exists`)
  for (const field of ['repository', 'homepage', 'bugs', 'author']) {
    if (manifest[field] === undefined)
      problems.push(`package.json has no "${field}": npm shows it, and provenance needs the repository`)
  }
  say('version', `${manifest.name} ${version}, of commit ${commit.slice(0, 12)}`)

  const changelog = releasedChangelog(readFileSync(join(ROOT, 'CHANGELOG.md'), 'utf8'), version, new Date())
  if ('problem' in changelog) problems.push(changelog.problem)
  else say('changelog', changelog.headings.join(', '))

  const tree = join(place, 'tree')
  mkdirSync(tree)
  const timeout = 5 * 60_000
  const archive = execFileSync('git', ['archive', commit], { cwd: ROOT, maxBuffer: 1 << 30, timeout })
  execFileSync('tar', ['-x', '-C', tree], { input: archive, timeout })
  symlinkSync(join(ROOT, 'node_modules'), join(tree, 'node_modules'))
  writeFileSync(join(tree, 'package.json'), `${JSON.stringify({ ...manifest, version }, null, 2)}\n`)
  if (!('problem' in changelog)) writeFileSync(join(tree, 'CHANGELOG.md'), changelog.text)
  run(tree, 'node', ['scripts/build.ts'])

  const { files, filename } = pack(tree, ['--dry-run'])
  const shipped = files.map(({ path }) => path)
  for (const path of strangersIn(shipped)) problems.push(`${path} belongs to no part of the package`)
  for (const path of shipped.filter(each => each.endsWith('.md'))) {
    const { text, lost } = withAbsoluteLinks(readFileSync(join(tree, path), 'utf8'), {
      path,
      shipped,
      manifest,
      version,
    })
    writeFileSync(join(tree, path), text)
    for (const link of lost)
      problems.push(`${path}: ${link} is not in the package, and package.json has no repository to link to`)
  }
  pack(tree, ['--pack-destination', place])
  const tarball = join(place, filename)
  const bytes = statSync(tarball).size
  const sha256 = createHash('sha256').update(readFileSync(tarball)).digest('hex')
  if (bytes > MOST_BYTES) problems.push(`the tarball has ${bytes} bytes; at most ${MOST_BYTES}`)
  say('tarball', `${filename}, ${(bytes / 1e6).toFixed(2)} MB, ${shipped.length} files, sha256 ${sha256.slice(0, 16)}…`)

  const prefix = join(place, 'prefix')
  const own = { HOME: join(place, 'home'), CODEX_HOME: '', CODEMACHINE_HOME: join(place, 'home/.codemachine') }
  mkdirSync(own.HOME)
  run(place, 'npm', ['install', '--global', '--prefix', prefix, '--offline', '--no-audit', '--no-fund', tarball], own)
  const program = join(prefix, 'bin/codemachine')
  const installed = run(place, program, ['--version'], own).trim()
  if (installed !== version) problems.push(`the installed program calls itself ${installed}`)
  const { CODEX_HOME: _, ...withoutHome } = own
  const demo = run(place, program, ['demo', '--plain'], {
    ...withoutHome,
    PATH: `${join(ROOT, 'node_modules/.bin')}:${env.PATH}`,
  })
  const isProved = /done and proved/i.test(demo)
  if (!isProved) problems.push('the demo of the installed program does not end as done and proved')
  say('installed', `${installed}; its demo ends as ${isProved ? 'done and proved' : 'something else'}`)

  const gates = values['no-gates'] ? [] : ['npm run check', 'npm test'].map(gate)
  for (const { command, exit: code } of gates)
    if (code !== 0) problems.push(`the gate ${command} fails with exit code ${code}`)
  if (gates.length === 0) say('gates', 'not run')

  const out = join(ROOT, 'dist-release')
  rmSync(out, { recursive: true, force: true })
  mkdirSync(out)
  cpSync(tarball, join(out, filename))
  const subject = [{ name: filename, digest: { sha256 } }]
  const predicate = {
    name: manifest.name,
    version,
    commit,
    tree: git('rev-parse', `${commit}^{tree}`),
    node: versions.node,
    gates,
  }
  writeFileSync(join(out, 'release.json'), `${JSON.stringify({ subject, predicate, problems }, null, 2)}\n`)
  say('written', `dist-release/${filename} and release.json, after ${Math.round((Date.now() - began) / 1000)} s`)

  for (const problem of problems) console.error(`missing    ${problem}.`)
  if (problems.length > 0) process.exitCode = 1
  const steps = [
    ['git', 'commit', '--all', '--message', `Release ${version}`],
    ['git', 'tag', '--annotate', `v${version}`, '--message', `codemachine ${version}`],
  ]
  if (isDryRun || problems.length > 0) {
    for (const step of steps) say('would run', step.join(' '))
  } else {
    for (const file of ['package.json', 'CHANGELOG.md']) cpSync(join(tree, file), join(ROOT, file))
    run(ROOT, 'npm', ['install', '--package-lock-only', '--offline', '--ignore-scripts'])
    for (const [program = '', ...args] of steps) run(ROOT, program, args)
  }
  say('then', `git push --follow-tags; .github/workflows/release.yml publishes v${version}`)
} catch (error) {
  const { stderr, message } = error as { stderr?: string; message: string }
  console.error(`${message.split('\n')[0]?.slice(0, 300)}\n${(stderr ?? '').slice(-1_000)}`)
  process.exitCode = 1
} finally {
  rmSync(place, { recursive: true, force: true })
}

/** What `npm pack` puts into the tarball. */
function pack(tree: string, args: readonly string[]): { filename: string; files: { path: string }[] } {
  // npm 11 prints a list, npm 12 an object by name.
  const said: Record<string, { filename: string; files: { path: string }[] }> = JSON.parse(
    run(tree, 'npm', ['pack', '--json', '--ignore-scripts', ...args]),
  )
  const [packed] = Object.values(said)
  if (!packed) throw new Error('npm pack named no tarball.')
  return packed
}

/** Runs a gate in the checkout, whose files are those of the commit: an exported tree is no repository. */
function gate(command: string): { command: string; exit: number; seconds: number } {
  const start = Date.now()
  let code = 0
  try {
    run(ROOT, 'bash', ['-c', command])
  } catch (error) {
    code = Number((error as { status?: number | null }).status ?? 1)
  }
  const seconds = Math.round((Date.now() - start) / 1000)
  say('gate', `${command}: exit code ${code}, ${seconds} s`)
  return { command, exit: code, seconds }
}
