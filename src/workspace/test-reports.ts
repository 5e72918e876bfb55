import { lstat, readdir } from 'node:fs/promises'
import { join, normalize } from 'node:path'
import { testCountOf, testCountOfJUnit } from '../core/rules/proof/test-counts.ts'
import { readRegularFile } from './files/inside-directory.ts'

/**
 * Returns the number of tests in a gate's reports since its start, in JUnit's XML or TAP: files in its line, and in the
 * usual folders of test runners. Null: no reports. Reads at most 500 files of 8 MiB, none through a link.
 * @param run the line of the gate
 * @param since Unix time, ms
 */
export async function testsInReports(directory: string, run: string, since: number): Promise<number | null> {
  const counts: number[] = []
  for (const path of [...new Set([...namedIn(run), ...(await listed(directory))])].slice(0, MOST_FILES)) {
    const at = join(directory, path)
    const stat = await lstat(at).catch(() => null)
    if (stat?.isFile() !== true || Math.max(stat.mtimeMs, stat.ctimeMs) < since - CLOCK_STEP_MS) continue
    const read = await readRegularFile(at, MOST_BYTES).catch(() => null)
    if (read?.kind !== 'bytes') continue
    const text = read.bytes.toString('utf8')
    const count = path.endsWith('.tap') ? testCountOf(text) : testCountOfJUnit(text)
    if (count !== null) counts.push(count)
  }
  return counts.length === 0 ? null : counts.reduce((sum, each) => sum + each, 0)
}

const MOST_FILES = 500
const MOST_BYTES = 8 * 1024 * 1024
/** Step of file system times, ms. */
const CLOCK_STEP_MS = 20
const REPORT = /\.(?:xml|tap)$/

/** Output folders of usual runners, each with its direct subfolders. */
const FOLDERS = [
  ...['reports', 'test-results', 'test-reports', 'build/test-results', 'target/surefire-reports'],
  ...['target/failsafe-reports', 'target/nextest', 'coverage', 'junit', 'TestResults', '_build/test/lib'],
]

function namedIn(run: string): string[] {
  const paths = run.match(/[\w./@+-]+\.(?:xml|tap)\b/g) ?? []
  return paths.map(normalize).filter(path => !path.startsWith('..') && !path.startsWith('/'))
}

async function listed(directory: string): Promise<string[]> {
  const paths = await reportsIn(directory, '')
  for (const folder of FOLDERS) {
    paths.push(...(await reportsIn(directory, folder)))
    for (const inner of await foldersIn(directory, folder)) paths.push(...(await reportsIn(directory, inner)))
  }
  return paths
}

async function reportsIn(directory: string, folder: string): Promise<string[]> {
  const names = await readdir(join(directory, folder)).catch(() => [])
  return names.filter(name => REPORT.test(name)).map(name => (folder === '' ? name : `${folder}/${name}`))
}

async function foldersIn(directory: string, folder: string): Promise<string[]> {
  const entries = await readdir(join(directory, folder), { withFileTypes: true }).catch(() => [])
  return entries
    .filter(entry => entry.isDirectory())
    .slice(0, MOST_FILES)
    .map(({ name }) => `${folder}/${name}`)
}
