// The camera is on only between open() and take() or close().

const REASONS = {
  NotAllowedError: "This page has no permission to use the camera. Allow it",
  NotFoundError: "No camera was found. Connect one",
  NotReadableError: "Another program uses the camera. Close it",
};

export async function cameraAvailable() {
  const devices = await navigator.mediaDevices?.enumerateDevices().catch(() => []);
  return Boolean(devices?.some((device) => device.kind === "videoinput"));
}

export class Camera {
  #opening = null; // the promise of a stream, until close() cancels it
  #stream = null;

  constructor(video) {
    this.video = video;
  }

  get on() {
    return Boolean(this.#stream);
  }

  // Returns true once the video plays, or false if close() came first.
  async open() {
    const opening = navigator.mediaDevices.getUserMedia({ video: { facingMode: "environment" } });
    this.#opening = opening;
    const stream = await opening.catch((error) => {
      const reason = REASONS[error.name] ?? `The camera cannot be used (${error.message}). Check it`;
      throw new Error(`${reason}, or choose a file.`);
    });
    if (this.#opening !== opening) {
      stop(stream);
      return false;
    }
    this.#stream = stream;
    this.video.srcObject = stream;
    await this.video.play();
    return true;
  }

  // Returns the current frame as a PNG file and closes the camera.
  take() {
    const shot = this.shoot();
    this.close();
    return shot;
  }

  // Returns the current frame as a PNG file.
  async shoot() {
    const { videoWidth, videoHeight } = this.video;
    const canvas = new OffscreenCanvas(videoWidth, videoHeight);
    canvas.getContext("2d").drawImage(this.video, 0, 0);
    const blob = await canvas.convertToBlob({ type: "image/png" });
    return new File([blob], "camera.png", { type: blob.type });
  }

  close() {
    this.#opening = null;
    stop(this.#stream);
    this.#stream = null;
    this.video.srcObject = null;
  }
}

function stop(stream) {
  stream?.getTracks().forEach((track) => track.stop());
}
