import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach } from 'vitest'

/** A work directory, with the home of its person and room for records beside it. */
export interface WorkDirectory {
  /** What all of it lies in, and the work directory in it: real paths, new for each test. */
  base: string
  work: string
  environment(): NodeJS.ProcessEnv
  /** Writes a file of the work directory, and the folders above it. */
  write(path: string, content: string | Buffer, mode?: number): void
  /** Answers what git prints, in the work directory as that person runs it. */
  git(...args: string[]): string
  gitIn(directory: string, ...args: string[]): string
  /** Commits all files. */
  commit(): void
}

/** Makes one before each test of the file, and removes it after it. */
export function workDirectoryForEach(name: string): WorkDirectory {
  const place: WorkDirectory = {
    base: '',
    work: '',
    environment: () => ({ PATH: process.env.PATH, HOME: join(place.base, 'home') }),
    write(path, content, mode) {
      const file = join(place.work, path)
      mkdirSync(dirname(file), { recursive: true })
      writeFileSync(file, content, mode === undefined ? {} : { mode })
    },
    git: (...args) => place.gitIn(place.work, ...args),
    gitIn: (directory, ...args) =>
      execFileSync('git', args, { cwd: directory, env: place.environment(), encoding: 'utf8', stdio: 'pipe' }).trim(),
    commit() {
      place.git('add', '--all')
      place.git('-c', 'user.name=p', '-c', 'user.email=p@example.org', 'commit', '--quiet', '--allow-empty', '-m', 'x')
    },
  }
  beforeEach(() => {
    place.base = realpathSync(mkdtempSync(join(tmpdir(), `${name}-`)))
    place.work = join(place.base, 'work')
    for (const folder of [place.work, join(place.base, 'home'), join(place.base, 'records')]) mkdirSync(folder)
  })
  afterEach(() => rmSync(place.base, { recursive: true, force: true }))
  return place
}
