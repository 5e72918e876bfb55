import { cpSync, globSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import type { Running } from './codemachine.ts'
import type { Scene } from './scene.ts'

/**
 * Ends a run of this process and leaves the disk as a SIGKILL at this moment would, for what goes on from there; what a kill leaves
 * running needs a real one. To be called while the run waits for something.
 */
export async function cutOffHere({ place }: Pick<Scene, 'place'>, running: Running): Promise<void> {
  const kept = join(place.root, 'kept')
  const folders = [place.home, place.directory]
  for (const folder of folders)
    cpSync(folder, join(kept, basename(folder)), { recursive: true, preserveTimestamps: true, verbatimSymlinks: true })
  await running[Symbol.asyncDispose]()
  for (const folder of folders) {
    rmSync(folder, { recursive: true, maxRetries: 5 })
    renameSync(join(kept, basename(folder)), folder)
  }
  // Who took a lock does not live any more.
  for (const lock of globSync(join(place.home, '.codemachine', 'state', '*', '{lock,sessions/*/lock}')))
    writeFileSync(lock, readFileSync(lock, 'utf8').replace(/"startTime":"[^"]*"/, '"startTime":"0"'))
}
