import { cpSync, lstatSync, mkdirSync, renameSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'
import { systemErrorCode } from '../base/errors.ts'

/** Moves what lies at a path to `destination`, also to another file system. Links are moved, never followed. */
export function putAside(path: string, destination: string): void {
  mkdirSync(dirname(destination), { recursive: true, mode: 0o700 })
  try {
    renameSync(path, destination)
  } catch (error) {
    if (systemErrorCode(error) !== 'EXDEV') throw error
    // Pipes and sockets hold nothing that could be copied.
    const filter = (source: string) => {
      const stat = lstatSync(source)
      return stat.isFile() || stat.isDirectory() || stat.isSymbolicLink()
    }
    cpSync(path, destination, { recursive: true, verbatimSymlinks: true, filter })
    rmSync(path, { recursive: true, force: true })
  }
}
