import { useApp, useCursor, useInput, usePaste, useStdout } from 'ink'
import { useEffect, useSyncExternalStore } from 'react'
import type { Key } from '../composer/key.ts'
import { type InkKey, keysFromInk } from '../composer/key.ts'
import { Rows } from '../rows.tsx'
import type { Frame } from './layout.ts'

/** What only a mounted Ink app can do. */
export interface Mounted {
  /** Writes above the frame. */
  write(text: string): void
  /** Lends the terminal, and takes it back when the action is over. */
  suspend(action: () => Promise<void>): Promise<void>
}

export interface AppProps {
  subscribe(listener: () => void): () => void
  /** The same object until something has changed. */
  frame(): Frame
  onKeys(keys: readonly Key[]): void
  onPaste(text: string): void
  onMounted(mounted: Mounted): void
}

/** The frame as Ink draws it: a row is a `Text` of its own, so that only those are written that have changed. */
export function App({ subscribe, frame, onKeys, onPaste, onMounted }: AppProps) {
  const { lines, caret } = useSyncExternalStore(subscribe, frame)
  const { write } = useStdout()
  const { suspendTerminal } = useApp()
  const { setCursorPosition } = useCursor()
  useInput((input, key: InkKey) => onKeys(keysFromInk(input, key)))
  usePaste(onPaste)
  useEffect(() => {
    onMounted({ write, suspend: async action => void (await suspendTerminal(action)) })
  }, [onMounted, write, suspendTerminal])
  setCursorPosition(caret ?? undefined)
  return <Rows lines={lines} />
}
