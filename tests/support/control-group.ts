import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'

/** A control group (cgroup v2) of a test's own. Disposing of it kills what is in it. */
export interface TestGroup extends AsyncDisposable {
  /** A program with arguments that goes into the group, and becomes the command line that follows. */
  enter: readonly string[]
}

const ENTER = 'echo $$ > "$0/cgroup.procs" && exec "$@"'

/** The group of this process, if it may make groups below it, put processes into them and kill these (Linux 5.14); else null. */
export function writableControlGroup(): string | null {
  if (process.platform !== 'linux') return null
  const group = /^0::(.*)$/m.exec(readFileSync('/proc/self/cgroup', 'utf8'))?.[1]
  const mounts = readFileSync('/proc/self/mountinfo', 'utf8').split('\n')
  const mount = mounts.find(line => line.includes(' - cgroup2 '))?.split(' ')[4]
  if (group === undefined || mount === undefined || !existsSync(join(mount, group, 'cgroup.procs'))) return null
  const tried = join(mount, group, `codemachine-tried-${process.pid}`)
  try {
    mkdirSync(tried)
  } catch {
    return null
  }
  const canKill = existsSync(join(tried, 'cgroup.kill'))
  const { status } = spawnSync('/bin/sh', ['-c', ENTER, tried, 'true'])
  rmdirSync(tried)
  return canKill && status === 0 ? join(mount, group) : null
}

/** Makes one below `parent`. */
export function makeControlGroup(parent: string, name: string): TestGroup {
  const folder = join(parent, name)
  mkdirSync(folder)
  return {
    enter: ['/bin/sh', '-c', ENTER, folder],
    async [Symbol.asyncDispose]() {
      writeFileSync(join(folder, 'cgroup.kill'), '1')
      const isEmpty = () => readFileSync(join(folder, 'cgroup.events'), 'utf8').includes('populated 0')
      for (const end = performance.now() + EMPTY_MS; !isEmpty() && performance.now() < end; ) await delay(10)
      rmdirSync(folder)
    },
  }
}

/** How long the kernel may take to take killed processes away, ms. */
const EMPTY_MS = 10_000
