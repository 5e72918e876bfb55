import { createHash } from 'node:crypto'
import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { systemErrorCode } from '../base/errors.ts'
import { readBoundedText } from '../platform/bounded-file.ts'
import { writeWholeFile } from '../platform/write-whole-file.ts'

/*
 * Who is outside of the agents' sandbox can write into the records, and nobody in it can. So whoever asks a session lays
 * a file there that names the request by its text: a request that is put in its place is none that was shown.
 */

/**
 * Shows in the records' folder that the request with this id and text comes from outside of the sandbox. Where nothing
 * can be written there, nothing is shown.
 */
export async function showOutside(records: string, id: string, request: string): Promise<void> {
  try {
    // The folder of the records itself is the session's to make.
    await mkdir(folderIn(records), { mode: 0o700 }).catch(error => {
      if (systemErrorCode(error) !== 'EEXIST') throw error
    })
    await writeWholeFile(join(folderIn(records), id), digestOf(request))
  } catch (error) {
    if (systemErrorCode(error) === null) throw error
  }
}

/** Whether that was shown for this very text. */
export async function isShownOutside(records: string, id: string, request: string): Promise<boolean> {
  const read = await readBoundedText(join(folderIn(records), id), DIGEST_BYTES)
  return typeof read === 'object' && 'text' in read && read.text === digestOf(request)
}

/** Takes back what was shown. */
export async function forgetOutside(records: string, id: string): Promise<void> {
  await rm(join(folderIn(records), id), { force: true }).catch(() => {})
}

const DIGEST_BYTES = 64

function folderIn(records: string): string {
  return join(records, 'asked')
}

function digestOf(request: string): string {
  return createHash('sha256').update(request).digest('hex')
}
