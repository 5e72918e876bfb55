import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'

/** Removes the files that a git has left which was killed, or had no room, while it wrote objects. Nothing refers to them. */
export async function removeUnfinished(gitDir: string): Promise<void> {
  const objects = join(gitDir, 'objects')
  for (const folder of await readdir(objects).catch(() => [])) {
    const names = await readdir(join(objects, folder)).catch(() => [])
    for (const name of names) if (UNFINISHED.test(name)) await rm(join(objects, folder, name), { force: true })
  }
}

const UNFINISHED = /^(?:tmp_(?:obj|pack|idx|rev|bitmap)_|\.tmp-\d+-pack-)/
